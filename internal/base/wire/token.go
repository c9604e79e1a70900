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

// ErrNoToken says that a report has not the token of its attempt: its sender was not given the attempt.
var ErrNoToken = errors.New("the report has no token of this attempt: send back the one of its submission")

type (
	keyOf   struct{}
	tokenOf struct{}
)

// WithKey returns a context in which Token makes tokens. The key is the id of the schema, which only programs with
// access to the database can read.
func WithKey(ctx context.Context, schemaID string) context.Context {
	return context.WithValue(ctx, keyOf{}, schemaID)
}

// Token returns what a submission carries, so that a report on its attempt is believed: "" in a context without a key.
func Token(ctx context.Context, f *saga.Fire) string {
	key, _ := ctx.Value(keyOf{}).(string)
	if key == "" {
		return ""
	}
	return token(key, f.Run, f.Attempt)
}

// WithToken returns a context in which scheduler.Reports take a report only with the token of its attempt. A program
// that reports with the database in hand needs none.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenOf{}, token)
}

// NeedsToken reports whether the context is one of WithToken.
func NeedsToken(ctx context.Context) bool { return ctx.Value(tokenOf{}) != nil }

// Proves reports whether the token of the context is the one that was given with the attempt.
func Proves(ctx context.Context, schemaID string, run saga.ID, attempt int) bool {
	given, _ := ctx.Value(tokenOf{}).(string)
	return hmac.Equal([]byte(given), []byte(token(schemaID, run, attempt)))
}

func token(key string, run saga.ID, attempt int) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("edda report " + run.String() + "/" + strconv.Itoa(attempt)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
