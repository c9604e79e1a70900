package trouble

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

// CommitTimeout bounds a write and its COMMIT, which shutdown does not cancel.
const CommitTimeout = 30 * time.Second

// AnswerTimeout bounds a statement of an engine's own before handlers run. A server that is gone without a word, as in
// a failover of its machine, leaves a connection on which nothing comes any more, and no error either.
const AnswerTimeout = CommitTimeout

// Guilty reports whether an error is the fault of the only message of its transaction.
func Guilty(class pgerr.Class, err error) bool {
	return (class == pgerr.Other || class == pgerr.AbortedAlready) && pgerr.Code(err) != ""
}

// Doubtful reports whether an error is either the fault of the only message of its transaction or that of a database
// which is slow, full or away. Locks and races are of neither kind: another transaction has won, and has what it
// wanted.
func Doubtful(class pgerr.Class, err error) bool {
	switch class {
	case pgerr.Cancelled, pgerr.IdleKilled, pgerr.Exhausted, pgerr.Lost, pgerr.ReadOnly, pgerr.Unprepared:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) // the write took longer than CommitTimeout
}

// Deaths counts the processes that died with a message in hand.
type Deaths struct {
	Counted int // the first death of a message that runs in batches is not
	Alone   int // of these, with nothing else in hand
}

// Guilty reports whether so many processes died with a message that it is a dead letter. The first of them was healthy,
// and wrote nothing down. Deaths in company count as one beside it, for what died among others is more likely a
// neighbour of the guilty. So an innocent is at risk only if it is in hand, and nothing else, in process after process
// that dies of something else.
func (d Deaths) Guilty(most int) bool {
	company := min(1, d.Counted-d.Alone)
	return d.Alone > 0 && 1+company+d.Alone >= most
}

// Rollback ends the transaction of conn, if it has one open.
func Rollback(ctx context.Context, conn *pgx.Conn, log *slog.Logger, endpoint string) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		log.Debug("edda: rollback failed", "endpoint", endpoint, "error", err)
	}
}
