-- No constraint keeps a second row out, so that a count of the rows reveals duplicates.
CREATE TABLE IF NOT EXISTS placed      (order_id int NOT NULL, cents int NOT NULL);
CREATE TABLE IF NOT EXISTS charge      (order_id int NOT NULL, cents int NOT NULL);
CREATE TABLE IF NOT EXISTS refund      (order_id int NOT NULL);
CREATE TABLE IF NOT EXISTS reservation (order_id int NOT NULL, goods text NOT NULL);
CREATE TABLE IF NOT EXISTS release     (order_id int NOT NULL);
CREATE TABLE IF NOT EXISTS shipment    (order_id int NOT NULL);
CREATE TABLE IF NOT EXISTS outcome     (order_id int NOT NULL, outcome text NOT NULL);
