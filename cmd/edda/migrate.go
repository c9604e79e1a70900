package main

import (
	"context"
	"fmt"
	"io"

	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/spf13/cobra"
)

func (t migrating) commands() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate", Short: "Make the tables, bring them up to date, install endpoints",
		Long: `Make the tables, bring them up to date, install endpoints.

up and install need the rights of the schema's owner. A database administrator can run the script of
"edda migrate sql" instead.`,
		Example: `  edda migrate up
  edda migrate status`,
		RunE: group,
	}
	c.AddCommand(t.up(), t.status(), t.sql(), t.install(), t.grants())
	return c
}

// migrating has the commands that create the tables, and install endpoints.
type migrating struct{ *tool }

func (t *tool) options() migrations.Options { return migrations.Options{Schema: t.schemaName()} }

func (t migrating) up() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Create the schema if it is missing, and apply the missing migrations",
		Long: `Create the schema if it is missing, and apply the missing migrations. Any number of processes may do this
at once. If the schema is up to date, the command writes nothing and needs no right to create tables. A migration waits
for a lock at most two seconds, because every other session waits behind it, and is tried again for a minute: the log
names the session that holds the lock.`,
		Example: `  edda migrate up
  DATABASE_URL=postgres://owner@db/shop edda migrate up --schema shop_edda`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, err := t.connect(c.Context(), t.unbounded(c))
			if err != nil {
				return err
			}
			before, err := migrations.Status(ctx, t.pool, t.options())
			if err != nil {
				return err
			}
			o, applied := t.options(), []int64{}
			o.Applied = func(m migrations.Migration) { applied = append(applied, m.Version) }
			if err := migrations.Up(ctx, t.pool, o); err != nil {
				return err
			}
			missing := len(missingOf(before))
			version := max(newest(before), migrations.Version)
			text, args := "Schema %q is now at version %d: %d of its migrations were missing.",
				[]any{t.schemaName(), version, missing}
			switch {
			case missing == 0:
				text, args = "Schema %q is up to date, at version %d.", args[:2]
			case len(applied) < missing:
				text = "Schema %q is now at version %d: %d of its migrations were missing, and other processes have " +
					"applied %d of them."
				args = append(args, missing-len(applied))
			}
			return t.print(lineOf(view.Object{"schema", t.schemaName(), "version", version, "applied", applied}, text,
				args...))
		},
	}
}

// newest returns the newest applied version.
func newest(status []migrations.Migration) (version int64) {
	for _, m := range status {
		if !m.Applied.IsZero() {
			version = max(version, m.Version)
		}
	}
	return version
}

// missingOf returns the versions of this program that the schema does not have.
func missingOf(status []migrations.Migration) []int64 {
	missing := []int64{}
	for _, m := range status {
		if m.Applied.IsZero() {
			missing = append(missing, m.Version)
		}
	}
	return missing
}

// fits reports whether this program can work with the schema.
func (t *tool) fits(status []migrations.Migration) error {
	for _, m := range status {
		if m.Unknown && m.Breaking {
			return fmt.Errorf("%w: version %d of schema %q refuses programs up to schema version %d; "+
				"use a newer edda",
				migrations.ErrTooNew, m.Version, t.schemaName(), migrations.Version)
		}
	}
	switch missing := missingOf(status); len(missing) {
	case 0:
		return nil
	case migrations.Version:
		return fmt.Errorf("%w: there is no schema %q in this database, or it has no tables of Edda",
			migrations.ErrNotMigrated, t.schemaName())
	default:
		return fmt.Errorf("%w: schema %q has %d of the %d migrations this program needs",
			migrations.ErrNotMigrated, t.schemaName(), migrations.Version-len(missing), migrations.Version)
	}
}

func (t migrating) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show which migrations were applied; exit code 1 if some are missing",
		Long: `Show which migrations were applied. The exit code is 0 when this program can work with the schema, and 1
if migrations are missing or a newer program has changed the schema so that this one must not use it. Run it as a check
before a deploy.`,
		Example: `  edda migrate status
  edda migrate status --json | jq '.up_to_date'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, err := t.connect(c.Context(), t.timeout)
			if err != nil {
				return err
			}
			status, err := migrations.Status(ctx, t.pool, t.options())
			if err != nil {
				return err
			}
			unfit := t.fits(status)
			v := view.Migrations(status).View()
			v.JSON = append(v.JSON, "schema", t.schemaName(), "up_to_date", unfit == nil)
			if err := t.print(v); err != nil {
				return err
			}
			return unfit
		},
	}
}

func (t migrating) sql() *cobra.Command {
	return &cobra.Command{
		Use: "sql", Short: "Print the migrations as a script for psql",
		Long: `Print the migrations of "edda migrate up" as a script for psql, in one transaction. The script may run
again, and on an older schema: it applies the missing migrations. To print it needs no database.`,
		Example: `  edda migrate sql > edda.sql
  edda migrate sql --schema shop_edda | psql -X "$DATABASE_URL"`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			script, err := migrations.SQL(t.schemaName())
			if err != nil {
				return usage(c, err)
			}
			return t.script(script)
		},
	}
}

func (t migrating) grants() *cobra.Command {
	var roles migrations.Roles
	c := &cobra.Command{
		Use: "grants", Short: "Print the rights that programs need, as a script for psql",
		Long: `Print a script that gives existing roles their rights in the schema and revokes surplus rights, for
existing tables and for queues that are installed later. Run it as the schema's owner, after "edda migrate up", and
again after each migration. To print it needs no database.

  --runtime  runs endpoints: reads and writes messages and instances, and creates nothing
  --sender   sends messages, and reads no messages
  --reader   reads: this program's list and show commands, metrics, dashboards`,
		Example: `  edda migrate grants --runtime shop_worker --sender shop_web | psql -X "$OWNER_URL"
  edda migrate grants --reader grafana --schema shop_edda`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			script, err := migrations.Grants(t.schemaName(), roles)
			if err != nil {
				return usage(c, err)
			}
			return t.script(script)
		},
	}
	c.Flags().StringVar(&roles.Runtime, "runtime", "", "role that runs endpoints")
	c.Flags().StringVar(&roles.Sender, "sender", "", "role that sends")
	c.Flags().StringVar(&roles.Reader, "reader", "", "role that reads")
	return c
}

// script prints SQL unescaped: its texts are the program's own, and names are quoted in it.
func (t *tool) script(text string) error {
	if t.json {
		return t.print(view.View{JSON: view.Object{"sql", text}})
	}
	_, err := io.WriteString(t.out, text)
	return err
}

func (t migrating) install() *cobra.Command {
	var kinds []string
	var relay bool
	c := &cobra.Command{
		Use: "install ENDPOINT...", Short: "Create the queues of endpoints, without their programs",
		Long: `Create the queues of endpoints, so that their programs can run under a role that may not create tables.
With --kinds each endpoint also subscribes to these kinds, in addition to its present ones: messages of a kind reach the
queue from then on. A running program subscribes its endpoint to the kinds it handles, so --kinds is needed only if
messages shall wait for a program before its first start. With --relay the command creates the queues of relays, which
carry messages to a broker.

Existing queues and subscriptions stay as they are. A new subscription waits for open transactions that publish.`,
		Example: `  edda migrate install orders billing
  edda migrate install orders --kinds order.place,payment.charged
  edda migrate install --relay shop.events --kinds order.paid`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, endpoints []string) error {
			t.timeout = t.unbounded(c)
			return t.operate(c, func(ctx context.Context, op *operate.Operator) (view.View, error) {
				install, what := op.Queues().Install, "Endpoint"
				if relay {
					install, what = op.Queues().InstallRelay, "Relay"
				}
				installed := []string{}
				for _, endpoint := range endpoints {
					if err := install(ctx, endpoint, kinds...); err != nil {
						return view.View{}, err
					}
					installed = append(installed, endpoint)
				}
				v := view.View{JSON: view.Object{"installed", installed, "kinds", append([]string{}, kinds...),
					"schema", t.schemaName()}}
				for _, endpoint := range installed {
					v.Parts = append(v.Parts, linef("%s %s is installed.", what, endpoint))
				}
				return v, nil
			})
		},
	}
	c.Flags().StringSliceVar(&kinds, "kinds", nil, "kinds to subscribe to, separated by commas")
	c.Flags().BoolVar(&relay, "relay", false, "install queues of relays")
	return c
}

// causeOf adds the cause of the context to an error that only reports the end of a context.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
