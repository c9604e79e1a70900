package wire

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/edda-go/edda/saga"
)

// ErrNoToken means that a report does not have the token of its attempt: its sender did not receive the attempt.
var ErrNoToken = errors.New("the report has no token of this attempt: send the token of its submission")

type (
	keyOf   struct{}
	tokenOf struct{}
)

// WithKey returns a context with a key for Token. The key is the id of the schema, which only programs with access to
// the database can read.
func WithKey(ctx context.Context, schemaID string) context.Context {
	return context.WithValue(ctx, keyOf{}, schemaID)
}

// Token returns the token of a submission; scheduler.Reports accept a report on its attempt only with this token. It
// is "" in a context without a key.
func Token(ctx context.Context, f *saga.Firing) string {
	key, _ := ctx.Value(keyOf{}).(string)
	if key == "" {
		return ""
	}
	return token(key, f.Run, f.Attempt)
}

// WithToken returns a context with a token. With it, scheduler.Reports accept a report only if the token is that of
// its attempt. A program that reports with access to the database needs no token.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenOf{}, token)
}

// NeedsToken reports whether the context comes from WithToken.
func NeedsToken(ctx context.Context) bool { return ctx.Value(tokenOf{}) != nil }

// Proves reports whether the context has the token that was given with the attempt.
func Proves(ctx context.Context, schemaID string, run saga.ID, attempt int) bool {
	given, _ := ctx.Value(tokenOf{}).(string)
	return hmac.Equal([]byte(given), []byte(token(schemaID, run, attempt)))
}

func token(key string, run saga.ID, attempt int) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("edda report " + run.String() + "/" + strconv.Itoa(attempt)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
