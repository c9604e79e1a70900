package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
)

const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInterrupted = 130
)

var (
	errTimeout  = errors.New("gave up after the timeout")
	errNotFound = errors.New("not found")
)

// usageError is an error in a command line.
type usageError struct {
	error
	command string // its help is recommended
}

func usage(c *cobra.Command, err error) error { return usageError{err, c.CommandPath()} }

// complain prints an error and its remedy, and returns the exit code.
func (t *tool) complain(ctx context.Context, err error) int {
	if errors.Is(ctx.Err(), context.Canceled) {
		t.say("edda: interrupted")
		return exitInterrupted
	}
	wrong := usageError{}
	t.say("edda: " + view.EscapeLines(redacted(err, t.database)))
	if errors.As(err, &wrong) {
		t.say("Run \"" + wrong.command + " --help\" for its arguments and flags.")
		return exitUsage
	}
	if hint := t.remedy(err); hint != "" {
		t.say(hint)
	}
	if isNotFound(err) {
		return exitNotFound
	}
	return exitFailed
}

// redacted returns the text of an error without the secrets of connection strings and of the environment.
func redacted(err error, database string) string {
	return redact(err.Error(), database, os.Getenv("DATABASE_URL"), os.Getenv("PGPASSWORD"))
}

// say writes a line to the error stream. If it cannot be written, the exit code still reports the failure.
func (t *tool) say(line string) { _, _ = fmt.Fprintln(t.err, line) }

func isNotFound(err error) bool {
	return errors.Is(err, errNotFound) || errors.Is(err, operate.ErrNoLetter) ||
		errors.Is(err, operate.ErrNoJob) || errors.Is(err, operate.ErrNoInstance) ||
		errors.Is(err, operate.ErrNoTimeout) ||
		errors.Is(err, operate.ErrNotFound) || errors.Is(err, operate.ErrNotInstalled) ||
		errors.Is(err, operate.ErrNoLimit) ||
		errors.Is(err, scheduler.ErrNoManifest) || errors.Is(err, scheduler.ErrNoGroup) ||
		errors.Is(err, scheduler.ErrNoRun) ||
		errors.Is(err, scheduler.ErrNotHeld)
}

// remedy returns the remedy of an error, "" if its text has one.
func (t *tool) remedy(err error) string {
	var (
		server  *pgconn.PgError
		connect *pgconn.ConnectError
	)
	switch {
	case errors.Is(err, migrations.ErrNotMigrated):
		return `Run "edda migrate up" as the schema's owner, or name a different one with --schema or $EDDA_SCHEMA.`
	case errors.As(err, &server):
		return remedyOf[server.Code]
	case errors.As(err, &connect):
		if cmp.Or(t.database, os.Getenv("DATABASE_URL"), os.Getenv("PGHOST"), os.Getenv("PGSERVICE")) == "" {
			return "No database was named: set $DATABASE_URL, for example to postgres://me@db.example.org/shop, or " +
				"give --database."
		}
		return "Is the server running? Check --database, $DATABASE_URL or $PGHOST and the like."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimeout):
		return fmt.Sprintf("It took longer than %v: a session holds a lock, or the server is slow or "+
			"unreachable. --timeout sets a different limit.", t.timeout)
	case errors.Is(err, operate.ErrNotInstalled):
		return `"edda queue list" shows the endpoints that are installed.`
	case errors.Is(err, operate.ErrNoLimit):
		return `"edda limit list" shows every limit. "edda limit set ENDPOINT NUMBER" makes one for an ` +
			`endpoint; a limit "named/…" is made by the program that uses it.`
	case errors.Is(err, scheduler.ErrNoManifest):
		return `"edda manifest list" shows every manifest.`
	case errors.Is(err, scheduler.ErrNoGroup):
		return `"edda group list" shows every group, and "edda group set GROUP" makes one.`
	case errors.Is(err, scheduler.ErrNoRun):
		return `"edda run list" shows the runs; old ended runs are deleted.`
	case errors.Is(err, scheduler.ErrNotHeld):
		return `"edda lease list" shows every lease and its holder.`
	case errors.Is(err, bus.ErrNoRoute):
		return `The endpoint it belongs to is not installed: "edda migrate install ENDPOINT" makes its queue.`
	}
	return ""
}

// remedyOf has the remedies by SQLSTATE.
var remedyOf = map[string]string{
	"28P01": "Set the password in $DATABASE_URL, $PGPASSWORD or ~/.pgpass.",
	"28000": "The server rejects this user from this address: see its pg_hba.conf.",
	"3D000": "There is no such database: create it, or name an existing one in --database or $DATABASE_URL.",
	"42501": `The role lacks a right. Migrations and installs need the schema's owner; "edda migrate grants" ` +
		`prints the rights for other roles.`,
	"53300": "The server has no connection left: lower the pools of the programs that use it, or raise " +
		"max_connections.",
	"57P03": "The server is starting or stopping: try again in a moment.",
}

// unreadable returns an error about a connection string without showing it: its password may be anywhere in it.
func unreadable(text string, err error) error {
	if isURL(text) {
		if _, parseErr := url.Parse(text); parseErr != nil {
			return errors.New("the connection string is not a URL: want " +
				"postgres://user@host:5432/database?sslmode=verify-full, with the special characters of a password " +
				"written as %40 and the like")
		}
	}
	if parse := (*pgconn.ParseConfigError)(nil); errors.As(err, &parse) && errors.Unwrap(parse) != nil {
		err = errors.Unwrap(parse)
	}
	return fmt.Errorf("the connection string cannot be used: %s", redact(err.Error(), text))
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

var passwordPair = regexp.MustCompile(`(?i)(?:ssl)?password\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// passwords returns the secrets in a connection string, both as written and decoded.
func passwords(text string) (found []string) {
	if u, err := url.Parse(text); err == nil && isURL(text) {
		if secret, ok := u.User.Password(); ok {
			found = append(found, secret)
			_, written, _ := strings.Cut(u.User.String(), ":")
			found = append(found, written)
		}
	}
	for _, pair := range passwordPair.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.Trim(pair[1], "'"))
		if meant, err := url.QueryUnescape(pair[1]); err == nil {
			found = append(found, meant)
		}
	}
	return found
}

func hasPassword(text string) bool { return len(passwords(text)) > 0 }

// redact removes the secrets of connection strings from a text. A string that is not a connection string is a bare
// password, and is removed too.
func redact(text string, connections ...string) string {
	for _, connection := range connections {
		secrets := passwords(connection)
		if !isURL(connection) && !strings.Contains(connection, "=") {
			secrets = append(secrets, connection)
		}
		for _, secret := range secrets {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "xxxxx")
			}
		}
	}
	return text
}
