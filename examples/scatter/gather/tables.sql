-- The program's own tables. Neither has a constraint that keeps a second row out: check.sql must be able to see it.
CREATE TABLE item   (run text NOT NULL, number int NOT NULL, value bigint NOT NULL, text text NOT NULL DEFAULT '');
CREATE TABLE result (run text NOT NULL, replies int NOT NULL, sum bigint NOT NULL, squares bigint NOT NULL);
CREATE INDEX ON item (run);
