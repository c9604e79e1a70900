package pgerr

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Class is the meaning of an error of Postgres for the caller.
type Class int

// Classes, with the SQLSTATEs that belong to each (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	Other          Class = iota // a bug, bad data, an ended context: 22…, 23…, 42… and all codes not named below
	Race                        // 40001, 40P01: another transaction won; try again
	Busy                        // 55P03: a lock was not free in time
	Cancelled                   // 57014: statement timeout or cancel
	IdleKilled                  // 25P03, 25P04: the session was ended for being idle or too long in a transaction
	Lost                        // 08…, 57P01-57P05, closed sockets: the connection is gone
	ReadOnly                    // 25006: not a primary
	Exhausted                   // 53…: disk, memory or connections ran out
	Unprepared                  // 42P01, 42703, 3F000, 42883: a table, column, schema or function is missing
	Denied                      // 42501: a missing grant
	GuardFailed                 // ED001: a guard of Edda's own failed; nothing was committed
	Mispooled                   // 42P05, 26000: a pooler gave the prepared statement's session to another client
	AbortedAlready              // 25P02, or a COMMIT that rolled back: the transaction had failed before
)

// guardCode is the SQLSTATE that the SQL function expect raises.
const guardCode = "ED001"

var classes = map[string]Class{
	"40001": Race, "40P01": Race,
	"55P03": Busy,
	"57014": Cancelled,
	"25P03": IdleKilled, "25P04": IdleKilled,
	"57P01": Lost, "57P02": Lost, "57P03": Lost, "57P04": Lost, "57P05": Lost,
	"25006": ReadOnly,
	"42P01": Unprepared, "42703": Unprepared, "3F000": Unprepared, "42883": Unprepared,
	"42501":   Denied,
	guardCode: GuardFailed,
	"42P05":   Mispooled,
	"26000":   Mispooled,
	"25P02":   AbortedAlready,
}

// Code returns the SQLSTATE of err, or "" if it is not an error of the server. It reads errors of every driver that
// has a method for the SQLSTATE, so database/sql works with pgx/stdlib and with lib/pq.
func Code(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// Refused reports whether the server has confirmed by err that the statement had no effect. A pooler whose session
// died makes up an error that has a SQLSTATE as well (PgBouncer's is 08P01) but does not show the effect of the
// statement: it may be a COMMIT that took effect. 40003 means that the outcome is unknown.
func Refused(err error) bool {
	code := Code(err)
	return code != "" && code != "40003" && !strings.HasPrefix(code, "08")
}

// ClassOf returns the class of an error that a call of pgx has returned. nil is Other, and so is the end of the
// caller's own context: it shows nothing about the database, although pgx has closed the connection. Do not pass
// errors that a handler has made: a lost connection to a different server looks the same.
func ClassOf(err error) Class {
	code := Code(err)
	if class, ok := classes[code]; ok {
		return class
	}
	switch {
	case strings.HasPrefix(code, "08"):
		return Lost
	case strings.HasPrefix(code, "53"):
		return Exhausted
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return AbortedAlready
	case code == "" && connectionLost(err):
		return Lost
	}
	return Other
}

// connectionLost recognises errors of the client side, which have no SQLSTATE. A context's deadline is a net.Error
// too, so it checks for contexts first. It takes a deadline while connecting for the connect_timeout of the
// configuration: pgx does not distinguish the two.
func connectionLost(err error) bool {
	var (
		network net.Error
		connect *pgconn.ConnectError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &connect):
		return true
	case errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgx.ErrTxClosed) || errors.As(err, &network)
}

// Constraint returns the name of the constraint that err violates, or "" for any other error and any driver other
// than pgx.
func Constraint(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.HasPrefix(e.Code, "23") {
		return e.ConstraintName
	}
	return ""
}

// Incurable reports whether err needs a human: a missing grant, a pooler that was not configured, or a corrupt
// database, which must not be touched further. Other errors may pass with time.
func Incurable(err error) bool {
	switch ClassOf(err) {
	case Denied, Mispooled:
		return true
	}
	switch Code(err) {
	case "XX000", "XX001", "XX002":
		return true
	}
	return false
}

// UnknownOutcome is the error of a commit whose connection broke. ID is the id of the first message in it. Package bus
// returns an *OutcomeUnknownError in its place.
type UnknownOutcome struct {
	ID  [16]byte
	Err error
}

func (e *UnknownOutcome) Error() string { return e.Err.Error() }
