package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"os"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

var errNoPassword = errors.New("SHOP_PASSWORD is not set")

// login is what asks a browser for a name and a password before it shows a page.
type login struct {
	pages    *eddaui.UI
	password string
}

// pages are the pages of Edda, for those who know the password.
func pages(pool *pgxpool.Pool) (*login, error) {
	l := &login{password: os.Getenv("SHOP_PASSWORD")}
	if l.password == "" {
		return nil, errNoPassword
	}
	ui, err := eddaui.New(pool, eddaui.Options{Sagas: []*saga.Definition{Orders}, Authorize: l.who})
	if err != nil {
		return nil, err
	}
	l.pages = ui
	return l, nil
}

func (l *login) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, given, _ := r.BasicAuth()
	want, got := sha256.Sum256([]byte(l.password)), sha256.Sum256([]byte(given))
	if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		http.Error(w, "a name and the password are needed", http.StatusUnauthorized)
		return
	}
	l.pages.ServeHTTP(w, r)
}

// who returns the actor of a request with the right password. The audit has its name.
func (*login) who(r *http.Request) (eddaui.Actor, error) {
	name, _, _ := r.BasicAuth()
	may := eddaui.View | eddaui.Bodies | eddaui.Retry | eddaui.Pause
	return eddaui.Actor{Name: name, From: r.RemoteAddr, Permissions: may}, nil
}

// Close ends the streams of open pages.
func (l *login) Close() { l.pages.Close() }
