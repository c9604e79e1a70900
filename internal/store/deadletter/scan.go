package deadletter

import (
	"time"

	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// scanLetter reads the columns that every statement on dead letters returns in this order, and then more columns.
func scanLetter(row pgx.CollectableRow, more ...any) (l recoverability.Letter, err error) {
	var (
		id           string
		sent, failed *time.Time
	)
	err = row.Scan(append([]any{
		&l.Number, &l.Endpoint, &id, &l.Kind, &l.Header, &l.Attempts, &l.Conflicts,
		&l.Reason, &l.Error, &sent, &failed, &l.Died, &l.Group,
	}, more...)...)
	if err != nil {
		return recoverability.Letter{}, err
	}
	if sent != nil {
		l.Sent = sent.UTC()
	}
	if failed != nil {
		l.FirstFailed = failed.UTC()
	}
	l.Died = l.Died.UTC()
	l.MessageID, err = saga.ParseID(id)
	return l, err
}

// scanOnly reads a letter without its body.
func scanOnly(row pgx.CollectableRow) (recoverability.Letter, error) { return scanLetter(row) }

func scanWithBody(row pgx.CollectableRow) (l recoverability.Letter, err error) {
	var body []byte
	l, err = scanLetter(row, &body)
	l.Body = body
	return l, err
}

func scanDiscarded(row pgx.CollectableRow) (d recoverability.Discarded, err error) {
	var id string
	if err = row.Scan(&d.Number, &d.Endpoint, &id, &d.Kind, &d.Saga, &d.Key, &d.Reason, &d.At); err != nil {
		return recoverability.Discarded{}, err
	}
	d.At = d.At.UTC()
	d.MessageID, err = saga.ParseID(id)
	return d, err
}
