package operate

import (
	"context"

	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// Resend resends letters in a transaction, as a job does.
func Resend(ctx context.Context, o *Operator, tx pgx.Tx, letters ...recoverability.Letter) error {
	return resender{o}.Resend(ctx, tx, letters...)
}
