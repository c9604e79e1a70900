package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

const standardTimeout = 30 * time.Second

// tool is one run of the program: its flags, and the database after a command has connected.
type tool struct {
	streams
	database string
	schema   string
	json     bool
	timeout  time.Duration
	reason   string

	pool   *pgxpool.Pool
	cancel context.CancelFunc
}

const rootHelp = `edda administers Edda's schema in a PostgreSQL database.

The database is --database, else $DATABASE_URL, else the database of the variables of libpq ($PGHOST, $PGUSER,
$PGDATABASE, $PGSERVICE and so on). Keep passwords out of the command line, which every user of the machine can read:
use $DATABASE_URL, $PGPASSWORD or ~/.pgpass.

Exit codes: 0 done; 1 failed; 2 the command line is wrong; 3 the named object does not exist; 130 interrupted.`

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use: "edda", Short: "Administer Edda's schema: migrations, queues, endpoints, limits, leases, sagas, dead " +
			"letters, the outbox and inbox, the history, manifests and their runs, and the audit", Long: rootHelp,
		Example: `  edda migrate up
  edda migrate install orders --kinds order.place,payment.charged
  edda queue list
  edda dead list --endpoint orders`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&t.database, "database", "", "connection string, postgres://… or host=… (default "+
		"$DATABASE_URL, else $PGHOST and the like)")
	flags.StringVar(&t.schema, "schema", "", `schema that holds Edda's tables (default $EDDA_SCHEMA, else "edda")`)
	flags.BoolVar(&t.json, "json", false, "print JSON with stable field names, for programs")
	flags.DurationVar(&t.timeout, "timeout", standardTimeout, "give up after this time; 0 is never; commands that "+
		"may wait for locks, or for an editor, have no limit unless this is given")
	flags.StringVar(&t.reason, "reason", "", "why, for the audit: commands that change something")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	root.AddCommand(migrating{t}.commands(), queues{t}.commands(), endpoints{t}.commands(), limits{t}.commands(),
		leases{t}.commands(), sagas{t}.commands(), letters{t}.commands(), border{t}.outboxCommands(),
		border{t}.inboxCommands(), histories{t}.commands(), manifests{t}.commands(), groups{t}.commands(),
		runs{t}.commands(), histories{t}.findCommand(), t.sendCommand(), t.vitalsCommand(),
		histories{t}.mapCommand(), t.auditCommand(), t.uiCommand(), t.devCommand(), beginnings{t}.demoCommand(),
		beginnings{t}.newCommand(), probes{t}.command(), t.versionCommand())
	return root
}

// group is the run function of a command that only has subcommands.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	text := fmt.Sprintf("%s has no command %s", c.CommandPath(), view.Escape(args[0]))
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(c, fmt.Errorf("%s", text))
}

// arguments wraps one of cobra's checks, so that a wrong number of arguments is an error of usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage(c, err)
		}
		return nil
	}
}

func (t *tool) schemaName() string { return cmp.Or(t.schema, os.Getenv("EDDA_SCHEMA"), "edda") }

// connect makes a pool, which connects when it is first used, and limits the command's time.
func (t *tool) connect(ctx context.Context, timeout time.Duration) (context.Context, error) {
	if _, err := migrations.SQL(t.schemaName()); err != nil { // the name is invalid, so no connection is needed
		return ctx, usageError{err, "edda"}
	}
	text := cmp.Or(t.database, os.Getenv("DATABASE_URL"))
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return ctx, unreadable(text, err)
	}
	if t.database != "" && hasPassword(t.database) {
		t.say("edda: every user of this machine can read a password on the command line: use $DATABASE_URL, " +
			"$PGPASSWORD or ~/.pgpass")
	}
	config.MaxConns = 3
	// works through a pooler too, whatever the connection string has
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "edda"
	}
	if t.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return ctx, err
	}
	if timeout > 0 {
		ctx, t.cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w of %v", errTimeout, timeout))
	}
	return ctx, nil
}

func (t *tool) close() {
	if t.cancel != nil {
		t.cancel()
	}
	if t.pool != nil {
		t.pool.Close()
	}
}

// open connects and makes an operator of a schema that is up to date.
func (t *tool) open(ctx context.Context) (context.Context, *operate.Operator, error) {
	return t.openWithin(ctx, t.timeout)
}

func (t *tool) openWithin(ctx context.Context, timeout time.Duration) (context.Context, *operate.Operator, error) {
	ctx, err := t.connect(t.acting(ctx), timeout)
	if err != nil {
		return ctx, nil, err
	}
	status, err := migrations.Status(ctx, t.pool, migrations.Options{Schema: t.schemaName()})
	if err != nil {
		return ctx, nil, err
	}
	if err := t.fits(status); err != nil {
		return ctx, nil, err
	}
	// MergePatch keeps numbers as they are written.
	op, err := operate.New(t.pool, operate.Options{Schema: t.schemaName(), Patch: jsonpatch.MergePatch})
	return ctx, op, err
}

// unbounded returns the timeout of commands that may have to wait for others: no timeout, unless the flag sets one.
func (t *tool) unbounded(c *cobra.Command) time.Duration {
	if c.Flags().Changed("timeout") {
		return t.timeout
	}
	return 0
}

// openStore connects and makes a store of manifests on a schema that is up to date.
func (t *tool) openStore(ctx context.Context) (context.Context, *scheduler.Store, error) {
	ctx, _, err := t.open(ctx)
	if err != nil {
		return ctx, nil, err
	}
	s, err := scheduler.NewStore(t.pool, scheduler.StoreOptions{Schema: t.schemaName()})
	return ctx, s, err
}

// operate connects, and prints the result of do.
func (t *tool) operate(c *cobra.Command, do func(context.Context, *operate.Operator) (view.View, error)) error {
	return printed(t, c, t.open, do)
}

// schedule connects, and prints the result of do.
func (t *tool) schedule(c *cobra.Command, do func(context.Context, *scheduler.Store) (view.View, error)) error {
	return printed(t, c, t.openStore, do)
}

func printed[S any](t *tool, c *cobra.Command, open func(context.Context) (context.Context, S, error),
	do func(context.Context, S) (view.View, error)) error {
	ctx, with, err := open(c.Context())
	if err != nil {
		return err
	}
	r, err := do(ctx, with)
	if err != nil {
		return causeOf(ctx, err)
	}
	return t.print(r)
}

// now returns the time of the database's clock.
func (t *tool) now(ctx context.Context) (now time.Time, err error) {
	if err := t.pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}

// because gives a command the flag --reason or --note, which it requires.
func because(flag string, why *string, c *cobra.Command) *cobra.Command {
	what := map[string]string{"reason": "why, for other people (required)", "note": "why, for the record (required)"}
	c.Flags().StringVar(why, flag, "", what[flag])
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if strings.TrimSpace(*why) == "" {
			return usage(c, fmt.Errorf("--%s is missing: give it, for people who look at this later", flag))
		}
		return run(c, args)
	}
	return c
}
