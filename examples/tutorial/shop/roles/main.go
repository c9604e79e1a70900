package main

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
)

// statements make a database that shop_owner owns, and to which shop_runtime may connect.
var statements = []string{
	`CREATE ROLE shop_owner LOGIN PASSWORD 'galar'`,
	`CREATE ROLE shop_runtime LOGIN PASSWORD 'fjalar'`,
	`CREATE DATABASE shop OWNER shop_owner`,
	`REVOKE ALL ON DATABASE shop FROM PUBLIC`,
	`GRANT CONNECT ON DATABASE shop TO shop_runtime`,
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run executes the statements as the administrator that DATABASE_URL names.
func run(ctx context.Context) error {
	admin, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	for _, sql := range statements {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
