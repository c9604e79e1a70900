package eddaui_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Orders is a saga of the program.
var Orders = world.Orders

// session returns the user of a request, from the program's sessions.
func session(r *http.Request) (string, error) {
	if name := r.Header.Get("X-Session"); name != "" {
		return name, nil
	}
	return "", errors.New("there is no session")
}

// rightsOf returns the rights of a user.
func rightsOf(user string) eddaui.Permission {
	if user == "ann" {
		return eddaui.View | eddaui.Bodies | eddaui.Retry | eddaui.Pause
	}
	return eddaui.View
}

// page basic
// withPassword requires a name and a password for every page.
func withPassword(next http.Handler, known func(name, password string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		if !ok || !known(name, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="Edda", charset="UTF-8"`)
			http.Error(w, "a name and a password are needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// byPassword is the Authorize behind withPassword.
func byPassword(r *http.Request) (eddaui.Actor, error) {
	name, _, _ := r.BasicAuth()
	return eddaui.Actor{Name: name, From: r.RemoteAddr, Permissions: rightsOf(name)}, nil
}

// end

// page proxy
// fromProxy trusts a header that a proxy in one of these networks has set in a request for this host.
func fromProxy(host, header string, networks ...netip.Prefix) func(*http.Request) (eddaui.Actor, error) {
	return func(r *http.Request) (eddaui.Actor, error) {
		at, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !slices.ContainsFunc(networks, func(n netip.Prefix) bool {
			return n.Contains(at.Addr().Unmap())
		}) {
			return eddaui.Actor{}, errors.New("the request does not come from a trusted proxy")
		}
		if r.Host != host {
			return eddaui.Actor{}, errors.New("the request names another host")
		}
		users := r.Header.Values(header) // two: a client has sent one through the proxy
		if len(users) != 1 || users[0] == "" {
			return eddaui.Actor{}, errors.New("the proxy does not say who it is")
		}
		return eddaui.Actor{Name: users[0], From: r.RemoteAddr, Permissions: rightsOf(users[0])}, nil
	}
}

// end

func embed(pool *pgxpool.Pool, mux *http.ServeMux, server *http.Server) error {
	// page embed
	ui, err := eddaui.New(pool, eddaui.Options{
		Sagas: []*saga.Definition{Orders},
		Authorize: func(r *http.Request) (eddaui.Actor, error) {
			user, err := session(r)
			if err != nil {
				return eddaui.Actor{}, err // 403, and the reason is in the log
			}
			return eddaui.Actor{Name: user, From: r.RemoteAddr, Permissions: rightsOf(user)}, nil
		},
	})
	if err != nil {
		return err
	}
	mux.Handle("/edda/", http.StripPrefix("/edda", ui))
	server.RegisterOnShutdown(ui.Close) // Shutdown waits for streams
	// end
	return nil
}

// The code on the page of the guide works.
func TestPageOfTheGuide(t *testing.T) {
	t.Parallel()
	pool, _ := newSchema(t)
	mux, server := http.NewServeMux(), &http.Server{}
	if err := embed(pool, mux, server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Shutdown(t.Context()) })
	ask := func(session string) int {
		r := httptest.NewRequest(http.MethodGet, "/edda/find", nil)
		r.Header.Set("X-Session", session)
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		return answer.Code
	}
	// the schema of the page is in no test's database
	if with, without := ask("ann"), ask(""); with == http.StatusForbidden || without != http.StatusForbidden {
		t.Errorf("with a session it is %d, without one %d", with, without)
	}
}

// The recipes for proxies admit the right people, under the right names.
func TestRecipesOfTheGuide(t *testing.T) {
	t.Parallel()
	known := func(name, password string) bool { return name == "ann" && password == "fjalar" }
	var seen eddaui.Actor
	basic := withPassword(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen, _ = byPassword(r)
	}), known)
	for password, status := range map[string]int{"fjalar": http.StatusOK, "galar": http.StatusUnauthorized} {
		r, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.SetBasicAuth("ann", password)
		basic.ServeHTTP(answer, r)
		if answer.Code != status || status != http.StatusOK && answer.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("with the password %s it is %d", password, answer.Code)
		}
	}
	if seen.Name != "ann" || seen.Permissions&eddaui.Pause == 0 {
		t.Errorf("the actor is %+v", seen)
	}
	proxy := fromProxy("edda.example.org", "X-Forwarded-User", netip.MustParsePrefix("10.0.0.0/24"))
	for _, c := range []struct {
		from, host string
		users      []string
		ok         bool
	}{
		{"10.0.0.7:4000", "", []string{"ann"}, true}, {"[::ffff:10.0.0.7]:4000", "", []string{"ann"}, true},
		{"10.0.1.7:4000", "", []string{"ann"}, false}, {"10.0.0.7:4000", "", nil, false},
		{"10.0.0.7:4000", "", []string{""}, false}, {"10.0.0.7:4000", "", []string{"eve", "ann"}, false},
		{"@", "", []string{"ann"}, false}, {"10.0.0.7:4000", "evil.example", []string{"ann"}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+cmp.Or(c.host, "edda.example.org")+"/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-User"] = c.from, c.users
		a, err := proxy(r)
		if (err == nil) != c.ok || c.ok && (a.Name != "ann" || a.Permissions&eddaui.Pause == 0) ||
			!c.ok && a.Permissions != 0 {
			t.Errorf("from %s as %v: %+v, %v", c.from, c.users, a, err)
		}
	}
}
