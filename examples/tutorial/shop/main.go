package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

var errNoDatabase = errors.New("DATABASE_URL is not set: it names the database, and the role")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

// run does what the command says, with the role that DATABASE_URL names.
func run(ctx context.Context, command string) error {
	database := os.Getenv("DATABASE_URL")
	if database == "" {
		return errNoDatabase
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch command {
	case "setup":
		return setup(ctx, pool)
	case "":
		return serve(ctx, pool)
	}
	return fmt.Errorf("shop %s: want shop, or shop setup", command)
}
