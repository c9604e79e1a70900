-- The shop's own tables. No constraint keeps a second row out: check.sql must be able to see it.
CREATE TABLE placed      (order_id int NOT NULL, cents int NOT NULL);
CREATE TABLE charge      (order_id int NOT NULL, cents int NOT NULL);
CREATE TABLE refund      (order_id int NOT NULL);
CREATE TABLE reservation (order_id int NOT NULL, goods text NOT NULL);
CREATE TABLE release     (order_id int NOT NULL);
CREATE TABLE shipment    (order_id int NOT NULL);
CREATE TABLE outcome     (order_id int NOT NULL, outcome text NOT NULL);
