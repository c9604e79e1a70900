package uihost

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/eddaui"
)

// access authenticates people, in one of three ways.
type access struct {
	// without authentication
	local string // the name of the local actor
	log   *slog.Logger

	mu      sync.Mutex
	token   string // "" after it was used
	session string
	cookie  string // the name of the session cookie

	users   map[string]string // by basic authentication: passwords by user name
	slow    *backOff          // for wrong passwords
	header  string            // the header that a proxy sets to the name
	proxies []netip.Prefix    // proxies that may set it
	hosts   []string          // host names of requests that reach the proxy, in lower case
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func newAccess(o Options) (*access, error) {
	a := &access{local: cmp.Or(o.Actor, "local"), slow: newBackOff(), log: o.Log}
	host, _, err := net.SplitHostPort(cmp.Or(o.Listen, Standard))
	if err != nil {
		return nil, fmt.Errorf("%w: --listen %q: want an address and a port, like 127.0.0.1:7433", ErrUsage, o.Listen)
	}
	way, what, _ := strings.Cut(o.Auth, ":")
	if len(o.Hosts) > 0 && way != "header" {
		return nil, fmt.Errorf("%w: --host names a host of the proxy of --auth header:NAME", ErrUsage)
	}
	for _, name := range o.Hosts {
		a.hosts = append(a.hosts, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	switch {
	case o.Auth == "" && !isLoopback(host):
		return nil, fmt.Errorf("%w: --listen %s can be reached from other machines: give --auth basic:FILE or "+
			"--auth header:NAME", ErrUsage, o.Listen)
	case o.Auth == "":
		a.token, a.session = rand.Text(), rand.Text()
		return a, nil
	case way == "basic" && what != "":
		return a, a.readUsers(what)
	case way == "header" && what != "":
		return a, a.readProxies(what)
	}
	return nil, fmt.Errorf("%w: --auth %q: want basic:FILE, or header:NAME", ErrUsage, o.Auth)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// readUsers reads lines NAME:PASSWORD. As with ~/.pgpass, other users must not be able to read the file.
func (a *access) readUsers(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("%w: --auth: %w", ErrUsage, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: --auth: %s has passwords, and others may read it: chmod 600", ErrUsage, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: --auth: %w", ErrUsage, err)
	}
	a.users = map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, ok := strings.Cut(line, ":")
		if !ok || name == "" || password == "" {
			return fmt.Errorf("%w: --auth: line %d of %s is not NAME:PASSWORD", ErrUsage, n, file)
		}
		a.users[name] = password
	}
	if len(a.users) == 0 {
		return fmt.Errorf("%w: --auth: %s has no line NAME:PASSWORD", ErrUsage, file)
	}
	return nil
}

// readProxies reads NAME, or NAME@NETWORK,NETWORK. Without networks only a proxy on this machine is trusted.
func (a *access) readProxies(text string) error {
	name, networks, given := strings.Cut(text, "@")
	a.header, a.proxies = name, loopback
	if !given {
		return nil
	}
	a.proxies = nil
	for one := range strings.SplitSeq(networks, ",") {
		network, err := netip.ParsePrefix(one)
		if err != nil {
			return fmt.Errorf("%w: --auth: %q is not a network like 10.0.0.0/8", ErrUsage, one)
		}
		a.proxies = append(a.proxies, network)
	}
	return nil
}

// listens takes the address of the listener, and returns the address for a browser. Browsers send a cookie to every
// port of a host, so the port is in its name: two programs on one machine have two cookies.
func (a *access) listens(listens net.Addr) string {
	_, port, _ := net.SplitHostPort(listens.String())
	a.cookie = "edda_ui_" + port
	if a.token != "" {
		return fmt.Sprintf("http://%s/?token=%s", listens, a.token)
	}
	return fmt.Sprintf("http://%s/", listens)
}

var (
	errUnknown = errors.New("the asker is not known")
	errHost    = errors.New("the host that the request names is no loopback address")
	errProxy   = errors.New("the request does not come from a trusted proxy")
	errName    = errors.New("the request names a host that is neither an IP address nor given by --host")
)

// everything is all rights, including future ones. Options.ReadOnly removes the rights to change something.
const everything = ^eddaui.Permission(0)

// authorize returns the actor of a request.
func (a *access) authorize(r *http.Request) (eddaui.Actor, error) {
	actor := eddaui.Actor{Name: a.local, From: r.RemoteAddr, Permissions: everything}
	switch {
	case a.users != nil:
		name, password, ok := r.BasicAuth()
		want, known := a.users[name]
		if same := equal(password, want); !ok || !known || !same {
			return eddaui.Actor{}, errUnknown
		}
		actor.Name = name
	case a.header != "":
		if !a.trusts(r.RemoteAddr) {
			return eddaui.Actor{}, errProxy
		}
		if !a.answersTo(r.Host) { // a browser beside the proxy may come by the name of another site, and set the header
			return eddaui.Actor{}, fmt.Errorf("%w: if the proxy passes it on, give --host %.80s", errName,
				nameOf(r.Host))
		}
		names := r.Header.Values(a.header)
		if len(names) != 1 || names[0] == "" { // two values: a browser has sent one through the proxy
			return eddaui.Actor{}, errUnknown
		}
		actor.Name = names[0]
	default:
		if !HostIsLoopback(r.Host) { // the name of a different site may have been pointed here
			return eddaui.Actor{}, errHost
		}
		if cookie, err := r.Cookie(a.cookie); err != nil || !equal(cookie.Value, a.session) {
			return eddaui.Actor{}, errUnknown
		}
	}
	return actor, nil
}

// equal compares in constant time.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// HostIsLoopback reports whether a host, with or without a port, can only be this machine. A site may point its own
// name to this machine, so a request with any other host is not to be trusted.
func HostIsLoopback(host string) bool { return isLoopback(nameOf(host)) }

// nameOf returns a host without its port, in lower case.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// answersTo reports whether a proxy may pass on a request for a host: a name of --host, localhost, or an address,
// which no site can point elsewhere.
func (a *access) answersTo(host string) bool {
	name := nameOf(host)
	return name == "localhost" || net.ParseIP(name) != nil || slices.Contains(a.hosts, name)
}

func (a *access) trusts(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, network := range a.proxies {
		if network.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// guard handles requests with a token, and requests a password if one is needed.
func (a *access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); a.session != "" && query.Has("token") && HostIsLoopback(r.Host) {
			a.enter(w, r, query)
			return
		}
		if a.users != nil && !a.passes(w, r) {
			return
		}
		if _, err := a.authorize(r); a.session != "" && errors.Is(err, errUnknown) {
			a.log.WarnContext(r.Context(), "edda: ui: a request was refused", "path", r.URL.Path, "error", err)
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, notEntered, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// passes reports whether a request has the right password. If not, it has answered the request.
func (a *access) passes(w http.ResponseWriter, r *http.Request) bool {
	name, _, given := r.BasicAuth()
	who := guesserOf(name, r.RemoteAddr)
	if wait := a.slow.wait(who); given && wait > 0 {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		http.Error(w, "too many wrong passwords: wait a moment", http.StatusTooManyRequests)
		return false
	}
	if _, err := a.authorize(r); err != nil {
		if given {
			a.slow.failed(who)
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("WWW-Authenticate", `Basic realm="Edda", charset="UTF-8"`)
		http.Error(w, "a name and a password are needed", http.StatusUnauthorized)
		return false
	}
	a.slow.passed(who)
	return true
}

// notEntered is the answer to a browser without a good token and without a cookie.
const notEntered = "This browser has no access yet. Open the address that the program printed last; it works " +
	"once. To use a second browser, start the program again."

// once describes how often the printed address works.
func (a *access) once() string {
	if a.session == "" {
		return ""
	}
	return "This address works once, in one browser. Start the program again for a second browser.\n"
}

// onward links to the page without its token. It is a link and not a redirect: after a redirect from a different
// site, such as a chat, a browser would not send the cookie.
var onward = template.Must(template.New("onward").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={{.}}"><title>Edda</title>
<p><a href="{{.}}">Continue to Edda</a></p></html>
`))

// enter exchanges the token for the cookie, once.
func (a *access) enter(w http.ResponseWriter, r *http.Request, query url.Values) {
	a.mu.Lock()
	fresh := a.token != "" && equal(query.Get("token"), a.token)
	if fresh {
		a.token = ""
	}
	a.mu.Unlock()
	cookie, err := r.Cookie(a.cookie)
	known := err == nil && equal(cookie.Value, a.session)
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	if !fresh && !known {
		http.Error(w, notEntered, http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: a.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	query.Del("token")
	to := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	if strings.HasPrefix(to.Path, "//") { // that would be a different host
		to.Path = "/"
	}
	head.Set("Content-Type", "text/html; charset=utf-8")
	_ = onward.Execute(w, to.String()) // the browser may have gone
}
