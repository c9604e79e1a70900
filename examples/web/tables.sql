-- The shop's own table. The outcome is NULL while the saga of the order lives.
CREATE TABLE IF NOT EXISTS shop_order (
    id       uuid PRIMARY KEY,
    item     text NOT NULL,
    quantity int NOT NULL,
    cents    bigint NOT NULL,
    note     text NOT NULL,
    placed   timestamptz NOT NULL DEFAULT now(),
    outcome  text
);
