-- The newest backup that `solisync backup` made of this database: one row, for a metric and `solisync doctor`.
CREATE TABLE last_backup (
    one         boolean     PRIMARY KEY DEFAULT true CHECK (one),
    finished_at timestamptz NOT NULL
);
