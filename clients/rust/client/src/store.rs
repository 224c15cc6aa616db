use crate::transport::Done;
use std::io;

/// Keeps the journal of a device, for one client at a time.
///
/// A store with `load` and `save` is complete. One that keeps replays apart saves less for each game.
pub trait Store: Send {
    /// Return the value that was saved last, or None at first.
    fn load(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Save a value completely or not at all, also if the machine fails.
    fn save(&mut self, value: &[u8]) -> io::Result<()>;

    /// Keep a value that can't be read under another name, with its replays, and return that name.
    fn set_aside(&mut self) -> io::Result<String>;

    /// Call `done` when all that was saved is stored, for a store that saves later.
    fn flush(&mut self, done: Done<io::Result<()>>) {
        done(Ok(()));
    }

    /// Save a replay apart from the journal, and return true; false if this store doesn't do that.
    fn save_replay(&mut self, _game: &str, _body: &str) -> io::Result<bool> {
        Ok(false)
    }

    /// Return a replay that was saved.
    fn replay(&mut self, _game: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// Remove the replays of all other games.
    fn keep_replays(&mut self, _games: &[String]) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the journal until the program ends.
#[derive(Default)]
pub struct MemoryStore {
    value: Option<Vec<u8>>,
}

impl Store for MemoryStore {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.value.clone())
    }

    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        self.value = Some(value.to_vec());
        Ok(())
    }

    fn set_aside(&mut self) -> io::Result<String> {
        self.value = None;
        Ok("nothing".to_owned())
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub use file::FileStore;

#[cfg(not(target_arch = "wasm32"))]
mod file {
    use super::Store;
    use std::fs::{
        File, OpenOptions, TryLockError, create_dir_all, read, read_dir, read_to_string, remove_file, rename,
    };
    use std::io::{self, ErrorKind, Write};
    use std::path::{Path, PathBuf};

    const FILE: &str = "solisync-2.json";
    const REPLAYS: &str = "replays";

    /// Keeps the journal in a directory, which belongs to one client at a time.
    pub struct FileStore {
        directory: PathBuf,
        _lock: File,
    }

    impl FileStore {
        /// Open a directory, which is made if it doesn't exist. Fails with `WouldBlock` while another client has it;
        /// Android and some file systems can't tell.
        pub fn open(directory: impl AsRef<Path>) -> io::Result<FileStore> {
            let directory = directory.as_ref().to_owned();
            create_dir_all(&directory)?;
            let lock = private().create(true).truncate(false).write(true).open(directory.join("solisync.lock"))?;
            unless_taken(lock.try_lock())?;
            Ok(FileStore { directory, _lock: lock })
        }

        fn path_of(&self, game: &str) -> PathBuf {
            self.directory.join(REPLAYS).join(format!("{game}.json"))
        }
    }

    /// Refuse a directory that another client has. Older libraries of Rust have no locks on Android, nor have all file
    /// systems: a directory opens there, too.
    fn unless_taken(locked: Result<(), TryLockError>) -> io::Result<()> {
        match locked {
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(ErrorKind::WouldBlock, "another client or process uses this directory"))
            }
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => Err(error),
            _ => Ok(()),
        }
    }

    /// Options for a file that only its owner can read: the journal has tokens.
    fn private() -> OpenOptions {
        #[allow(unused_mut)]
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }

    fn sync(directory: &Path) -> io::Result<()> {
        #[cfg(unix)] // Windows opens no directories
        File::open(directory)?.sync_all()?;
        let _ = directory;
        Ok(())
    }

    /// Write a file completely or not at all.
    fn replace(path: &Path, value: &[u8]) -> io::Result<()> {
        let next = path.with_extension("new");
        let mut file = private().create(true).truncate(true).write(true).open(&next)?;
        let written = file.write_all(value).and_then(|()| file.sync_all()).and_then(|()| rename(&next, path));
        if written.is_err() {
            let _ = remove_file(&next); // on a full disk, its space is needed
        }
        written?;
        path.parent().map_or(Ok(()), sync)
    }

    fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
        match result {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            result => result.map(Some),
        }
    }

    impl Store for FileStore {
        fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
            unless_missing(read(self.directory.join(FILE)))
        }

        fn save(&mut self, value: &[u8]) -> io::Result<()> {
            replace(&self.directory.join(FILE), value)
        }

        fn set_aside(&mut self) -> io::Result<String> {
            let name = |number| format!("{FILE}.damaged.{number}");
            let free =
                (1..).map(name).find(|name| !self.directory.join(name).exists()).expect("one of all numbers is free");
            rename(self.directory.join(FILE), self.directory.join(&free))?;
            unless_missing(rename(self.directory.join(REPLAYS), self.directory.join(format!("{free}-{REPLAYS}"))))?;
            sync(&self.directory)?;
            Ok(free)
        }

        fn save_replay(&mut self, game: &str, body: &str) -> io::Result<bool> {
            create_dir_all(self.directory.join(REPLAYS))?;
            replace(&self.path_of(game), body.as_bytes())?;
            sync(&self.directory)?;
            Ok(true)
        }

        fn replay(&mut self, game: &str) -> io::Result<String> {
            read_to_string(self.path_of(game))
        }

        fn keep_replays(&mut self, games: &[String]) -> io::Result<()> {
            for file in unless_missing(read_dir(self.directory.join(REPLAYS)))?.into_iter().flatten().flatten() {
                let path = file.path();
                let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                if !games.iter().any(|game| game == name) {
                    let _ = remove_file(path); // what can't be removed does no harm
                }
            }
            Ok(())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn directory_opens_where_there_are_no_locks() {
            let locked = |kind: ErrorKind| unless_taken(Err(TryLockError::Error(kind.into()))).map_err(|e| e.kind());
            assert_eq!(locked(ErrorKind::Unsupported), Ok(()));
            assert_eq!(locked(ErrorKind::PermissionDenied), Err(ErrorKind::PermissionDenied));
        }
    }
}
