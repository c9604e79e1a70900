package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// SignUp starts a signup.
type SignUp struct{ Email string }

// Remind is the timeout of a signup that is not confirmed.
type Remind struct{}

// Kind names the message.
func (SignUp) Kind() string { return "signup.start" }

// Kind names the message.
func (Remind) Kind() string { return "signup.remind" }

// Signup is the state of a signup.
type Signup struct{ Reminders int }

func (s *Signup) start(ctx *saga.Context, _ SignUp) error {
	if !ctx.IsNew() {
		return saga.Discard("this address has signed up already")
	}
	ctx.Timeout(24*time.Hour, Remind{})
	return nil
}

func (s *Signup) remind(ctx *saga.Context, _ Remind) error {
	if s.Reminders++; s.Reminders == 3 {
		ctx.Complete()
		return nil
	}
	ctx.Timeout(24*time.Hour, Remind{})
	return nil
}

var signups = saga.Define("signup", saga.Options{},
	saga.StartedBy(func(m SignUp) string { return m.Email }, (*Signup).start),
	saga.OnTimeout((*Signup).remind))

// states reads signups from outside.
var states = saga.StatesOf[Signup](signups)

// site is the web side. It only sends and reads, and would run as well in a process without endpoints.
type site struct {
	pool *pgxpool.Pool
	bus  *bus.Bus
}

// signUp writes the site's own row and sends in the same transaction. InTx wakes the workers right after the commit.
func (s *site) signUp(w http.ResponseWriter, r *http.Request) {
	var m SignUp
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	err := s.bus.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO signup (email) VALUES ($1)`, m.Email); err != nil {
			return err
		}
		_, err := s.bus.SendTx(ctx, tx, m)
		return err
	})
	answer(w, err)
}

// signUpSQL does the same for a program that uses transactions of database/sql.
func (s *site) signUpSQL(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, email := r.Context(), r.PostFormValue("email")
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			answer(w, err)
			return
		}
		if _, err = tx.ExecContext(ctx, `INSERT INTO signup (email) VALUES ($1)`, email); err == nil {
			_, err = s.bus.SQL(db).SendTx(ctx, tx, SignUp{Email: email})
		}
		if err != nil {
			answer(w, errors.Join(err, tx.Rollback()))
			return
		}
		answer(w, tx.Commit())
	}
}

// show reads the saga without a lock. The answer may be a moment old.
func (s *site) show(w http.ResponseWriter, r *http.Request) {
	state, found, err := states.Read(r.Context(), s.bus, r.PathValue("email"))
	switch {
	case err != nil:
		answer(w, err)
	case !found:
		http.NotFound(w, r)
	default:
		answer(w, json.NewEncoder(w).Encode(state))
	}
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := serve(ctx); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// serve runs the site and the endpoint in one process.
func serve(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS signup (email text PRIMARY KEY)`); err != nil {
		return err
	}
	if err := migrations.Up(ctx, pool, migrations.Options{}); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{AutoInstall: true})
	if err != nil {
		return err
	}
	endpoint, err := bus.NewEndpoint(b, "signups", bus.EndpointOptions{}, bus.Saga(signups))
	if err != nil {
		return err
	}
	host, err := edda.NewHost(endpoint, &web{site: &site{pool: pool, bus: b}, db: stdlib.OpenDBFromPool(pool)})
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// web is an edda.Runner: the HTTP server lives and ends with the endpoints.
type web struct {
	site *site
	db   *sql.DB
}

// Run serves until ctx ends.
func (w *web) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signups", w.site.signUp)
	mux.HandleFunc("POST /form", w.site.signUpSQL(w.db))
	mux.HandleFunc("GET /signups/{email}", w.site.show)
	server := &http.Server{Addr: "localhost:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		closed <- server.Shutdown(closing)
	})
	err := server.ListenAndServe()
	if errors.Is(err, http.ErrServerClosed) {
		err = <-closed
	}
	return errors.Join(err, w.db.Close())
}
