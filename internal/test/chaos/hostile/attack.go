package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// attacker sends hostile messages with the rights of a sender, and notes those that were accepted.
type attacker struct {
	race *race
	draw
	pool   *pgxpool.Pool // of the sender
	tables []string      // of shop, accounts, calls and border

	refused int
}

func newAttacker(ctx context.Context, r *race) (*attacker, error) {
	pool, err := lab.OpenPool(ctx, r.Server.DSN(), "attacker", "hostile_sender")
	if err != nil {
		return nil, err
	}
	a := &attacker{race: r, draw: draw{rand.New(rand.NewPCG(r.Seed, 1))}, pool: pool}
	a.tables = make([]string, 4)
	rows, _ := r.Pool.Query(ctx, sql.Get("queues"))
	var endpoint, table string
	_, err = pgx.ForEachRow(rows, []any{&endpoint, &table}, func() error {
		a.tables[slices.Index([]string{shop, accounts, calls, border}, endpoint)] = table
		return nil
	})
	return a, err
}

// attack does one harm. A refusal is right, and counted; an error of the connection is not.
func (a *attacker) attack(ctx context.Context) error {
	what, id, err := a.one(ctx)
	switch {
	case err == nil && id != saga.ID{}:
		_, err = a.race.Pool.Exec(ctx, sql.Get("attacked"), pgID(id), what)
		return err
	case err == nil || isRefusal(err):
		a.refused++
		return nil
	}
	return fmt.Errorf("attack by %s: %w", what, err)
}

// isRefusal reports whether the server or the bus has answered no. Everything else is an error of the connection.
func isRefusal(err error) bool {
	var answer *pgconn.PgError
	var permanent *saga.PermanentError
	return errors.As(err, &answer) || errors.As(err, &permanent) || errors.Is(err, saga.ErrTooLarge) ||
		errors.Is(err, bus.ErrNoRoute)
}

// one draws a way in. The id is zero when the message has gone to nobody.
func (a *attacker) one(ctx context.Context) (what string, id saga.ID, err error) {
	switch n := a.IntN(100); {
	case n < 20:
		id, err = a.byFunction(ctx)
		return "edda.send", id, err
	case n < 45:
		id, err = a.byInsert(ctx)
		return "insert", id, err
	case n < 55:
		sent, err := a.race.Bus.Send(ctx, saga.Raw{Name: a.kind(), Body: a.body()}, a.options()...)
		return "send", sent.ID, err
	case n < 75:
		s := a.setting()
		sent, err := a.race.Bus.Send(ctx, s)
		return "setting " + s.SQL, sent.ID, err
	case n < 85:
		m := oddPay{N: 1 + a.IntN(100), Do: a.IntN(misdeeds)}
		sent, err := a.race.Bus.Send(ctx, m)
		return fmt.Sprint("misdeed of a saga ", m.Do), sent.ID, err
	case n < 95:
		m := oddCall{Do: a.IntN(misdeeds)}
		sent, err := a.race.Bus.Send(ctx, m)
		return fmt.Sprint("misdeed of a call ", m.Do), sent.ID, err
	default:
		kind := []string{"hostile.poison", "hostile.panic", "hostile.version"}[a.IntN(3)]
		header := map[string]string{}
		if kind == "hostile.version" {
			header["edda-version"] = "2"
		}
		id, err = a.insert(ctx, a.tables[3], kind, asJSON(header), []byte("{}"))
		return "relay " + kind, id, err
	}
}

func (a *attacker) byFunction(ctx context.Context) (saga.ID, error) {
	var id pgx.Rows
	var endpoint *string
	if a.IntN(2) == 0 {
		endpoint = &[]string{shop, accounts, calls, border}[a.IntN(4)]
	}
	id, err := a.pool.Query(ctx, sql.Get("send"), a.kind(), a.body(), string(a.rawHeader()), endpoint, a.IntN(4) == 0)
	if err != nil {
		return saga.ID{}, err
	}
	type sent struct {
		ID     [16]byte
		Copies int
	}
	got, err := pgx.CollectOneRow(id, pgx.RowToStructByPos[sent])
	if err != nil || got.Copies == 0 {
		return saga.ID{}, err
	}
	return saga.ID(got.ID), nil
}

// byInsert goes around the function, as the rights of a sender allow.
func (a *attacker) byInsert(ctx context.Context) (saga.ID, error) {
	return a.insert(ctx, a.tables[a.IntN(len(a.tables))], a.kind(), a.rawHeader(), a.body())
}

func (a *attacker) insert(ctx context.Context, table, kind string, header, body []byte) (saga.ID, error) {
	id := uuid.New()
	var err error
	if a.IntN(5) == 0 {
		sent, due := a.of(moments...), a.of("now", "now", moments[0], moments[1])
		_, err = a.pool.Exec(ctx, strings.ReplaceAll(sql.Get("insert_forged"), ":queue", table), id, kind, header,
			body, []int32{-1, 1 << 30, 1<<31 - 1}[a.IntN(3)], sent, due)
	} else {
		_, err = a.pool.Exec(ctx, strings.ReplaceAll(sql.Get("insert"), ":queue", table), id, kind, header, body)
	}
	if err != nil {
		return saga.ID{}, err
	}
	return saga.ID(id), nil
}

// options are headers as a Go program may give them.
func (a *attacker) options() (o []saga.SendOption) {
	for name, value := range a.header() {
		o = append(o, saga.WithHeader(name, value))
	}
	return o
}

func pgID(id saga.ID) [16]byte { return [16]byte(id) }

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return text
}
