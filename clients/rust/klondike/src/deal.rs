//! The deal of a seed (docs/replays.md, "From a seed to a deal").

/// For each random number: how many cards it places, and its bound.
const NUMBERS: [(u32, u32); 8] = [
    (11, 479_001_600),
    (7, 253_955_520),
    (7, 3_315_312_000),
    (6, 652_458_240),
    (6, 1_987_690_320),
    (5, 115_511_760),
    (5, 205_476_480),
    (4, 344_362_200),
];
const ROUNDS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

fn quarter(words: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (x, y, z, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        words[x] = words[x].wrapping_add(words[y]);
        words[z] = (words[z] ^ words[x]).rotate_left(by);
    }
}

struct Words {
    key: [u32; 8],
    block: [u32; 16],
    next: usize,
    counter: u32,
}

impl Words {
    fn new(mut seed: u64) -> Words {
        let key = core::array::from_fn(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(11_634_580_027_462_260_723);
            ((((seed >> 18) ^ seed) >> 27) as u32).rotate_right((seed >> 59) as u32)
        });
        Words { key, block: [0; 16], next: 16, counter: 0 }
    }

    fn word(&mut self) -> u32 {
        if self.next == 16 {
            let [a, b, c, d, e, f, g, h] = self.key;
            let constants = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
            let [k, l, m, n] = constants;
            let start = [k, l, m, n, a, b, c, d, e, f, g, h, self.counter, 0, 0, 0];
            let mut words = start;
            for _ in 0..6 {
                ROUNDS.into_iter().for_each(|round| quarter(&mut words, round));
            }
            self.block = core::array::from_fn(|i| words[i].wrapping_add(start[i]));
            (self.next, self.counter) = (0, self.counter + 1);
        }
        self.next += 1;
        self.block[self.next - 1]
    }

    /// A number below a bound, from one word, or from two if the second could change it.
    fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(self.word()) * u64::from(bound);
        let (high, low) = ((product >> 32) as u32, product & 0xffff_ffff);
        if low <= (1 << 32) - u64::from(bound) {
            return high;
        }
        let next = (u64::from(self.word()) * u64::from(bound)) >> 32;
        high + u32::from(low + next >= 1 << 32)
    }
}

/// The shuffled cards. The columns take theirs from the front; the last card of the rest is drawn first.
pub fn shuffled(seed: u64) -> [u8; 52] {
    let mut words = Words::new(seed);
    let mut cards: [u8; 52] = core::array::from_fn(|card| card as u8);
    let mut place = 1;
    for (many, bound) in NUMBERS {
        let mut number = words.below(bound);
        for _ in 0..many {
            cards.swap(place as usize, (number % (place + 1)) as usize);
            number /= place + 1;
            place += 1;
        }
    }
    cards
}
