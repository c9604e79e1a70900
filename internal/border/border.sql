-- What the checker writes and reads. Its tables have no constraints: they are to show what happened.

-- name: database
CREATE DATABASE there;

-- name: create
CREATE SCHEMA :schema;
-- Here: each message, written by the transaction that sends it.
CREATE TABLE :schema.told (key text, n bigint);
-- There: each row that entered the queue, in the order in which they did, and each message that was handled.
CREATE TABLE :schema.entered (at bigserial, id uuid, key text, n bigint);
CREATE TABLE :schema.handled (key text, n bigint);

-- name: tell
INSERT INTO :schema.told (key, n) VALUES ($1, $2);

-- name: handle
INSERT INTO :schema.handled (key, n) VALUES ($1, $2);
