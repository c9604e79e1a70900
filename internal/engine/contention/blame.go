package contention

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

// CommitTimeout bounds a write and its COMMIT, which a shutdown does not cancel.
const CommitTimeout = 30 * time.Second

// AnswerTimeout bounds a statement that an engine runs before handlers. If the server's machine is lost, as in a
// failover, the connection delivers neither data nor an error.
const AnswerTimeout = CommitTimeout

// Guilty reports whether an error is the fault of the only message of its transaction.
func Guilty(class pgerr.Class, err error) bool {
	return (class == pgerr.Other || class == pgerr.AbortedAlready) && pgerr.Code(err) != ""
}

// Doubtful reports whether an error may be the fault of the only message of its transaction, or of a database that is
// slow, full or away. Locks and races are of neither kind: another transaction has won.
func Doubtful(class pgerr.Class, err error) bool {
	switch class {
	case pgerr.Cancelled, pgerr.IdleKilled, pgerr.Exhausted, pgerr.Lost, pgerr.ReadOnly, pgerr.Unprepared:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) // the write took longer than CommitTimeout
}

// Deaths counts the processes that died with a message in hand.
type Deaths struct {
	Counted int // the first death of a message that runs in batches is not counted
	Alone   int // deaths in Counted with nothing else in hand
}

// Guilty reports whether a message is a dead letter after these deaths. The first process was not in quarantine, and
// wrote nothing down. All deaths in company together count as one, because another message of the batch is the more
// likely cause. So an innocent message is at risk only if it is in hand alone in several processes that die of other
// causes.
func (d Deaths) Guilty(most int) bool {
	company := min(1, d.Counted-d.Alone)
	return d.Alone > 0 && 1+company+d.Alone >= most
}

// Rollback ends the transaction of conn, if one is open.
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
