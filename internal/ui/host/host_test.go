package uihost_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/ui/host"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

var address = regexp.MustCompile(`http://\S+`)

// start serves the pages of an empty schema, and returns the printed address. stop ends that.
func start(t *testing.T, o uihost.Options) (url string, stop func()) {
	t.Helper()
	return startWith(t, o, slog.DiscardHandler)
}

// startWith is start with the given log handler.
func startWith(t *testing.T, o uihost.Options, log slog.Handler) (url string, stop func()) {
	t.Helper()
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:0")
	return startAt(t, o, log)
}

// startAt is startWith at the address of the options, or at the standard one.
func startAt(t *testing.T, o uihost.Options, log slog.Handler) (url string, stop func()) {
	t.Helper()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	out, in := io.Pipe()
	o.Schema, o.Out, o.Log = schema, in, slog.New(log)
	host, err := uihost.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := host.Serve(ctx, uihost.Database{Pool: pool})
		_ = in.Close() // so that nothing waits for the address
		ended <- err
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("it says nothing: %v", <-ended)
	}
	url = address.FindString(lines.Text())
	go func() { _, _ = io.Copy(io.Discard, out) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		_ = in.Close()
	}
	t.Cleanup(stop)
	return url, stop
}

// person is a browser.
type person struct {
	t      *testing.T
	client *http.Client
}

func newPerson(t *testing.T) person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return person{t, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (p person) get(url string, change func(*http.Request)) (int, string, http.Header) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	got, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return got.StatusCode, string(body), got.Header
}

func TestTheTokenWorksOnce(t *testing.T) {
	t.Parallel()
	url, _ := start(t, uihost.Options{})
	base, token, ok := strings.Cut(url, "/?token=")
	if !ok || len(token) < 20 {
		t.Fatalf("the address is %s", url)
	}
	ann, eve := newPerson(t), newPerson(t)
	for _, path := range []string{"/", "/now.json", "/?live=1", "/?token=wrong", "/?token="} {
		code, body, _ := eve.get(base+path, nil)
		if code != http.StatusForbidden || strings.Contains(body, "Endpoints") ||
			!strings.Contains(body, "Open the address that the program printed last; it works once") {
			t.Errorf("%s without the token is %d", path, code)
		}
	}
	code, body, head := ann.get(base+"/dead?endpoint=a&token="+token, nil)
	cookie := head.Get("Set-Cookie")
	if code != http.StatusOK || !strings.Contains(body, `url=/dead?endpoint=a"`) || strings.Contains(body, token) ||
		!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") ||
		strings.Contains(cookie, token) || head.Get("Cache-Control") != "no-store" ||
		head.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the token is answered by %d %v:\n%s", code, head, body)
	}
	code, body, _ = ann.get(base+"/", nil)
	if code != http.StatusOK || !strings.Contains(body, "No endpoint is installed") {
		t.Errorf("with the cookie it is %d: %s", code, body)
	}
	if code, _, _ := eve.get(base+"/?token="+token, nil); code != http.StatusForbidden {
		t.Errorf("the token in another browser is %d", code)
	}
	if code, _, _ := ann.get(base+"/?token="+token, nil); code != http.StatusOK {
		t.Errorf("the address again, in the browser that has the cookie, is %d", code)
	}
	code, _, _ = eve.get(base+"/", func(r *http.Request) { // a browser at a different site's name sends it, too
		r.Host = "evil.example"
		r.Header.Set("Cookie", strings.Split(cookie, ";")[0])
	})
	if code != http.StatusForbidden {
		t.Errorf("under the name of another site it is %d", code)
	}
}

// Browsers ignore ports when they send cookies: two programs on one machine must not log out each other's browsers.
func TestTwoProgramsKeepTheirBrowser(t *testing.T) {
	t.Parallel()
	ann, bases := newPerson(t), []string{}
	for range 2 {
		url, _ := start(t, uihost.Options{})
		base, _, _ := strings.Cut(url, "?")
		bases = append(bases, base)
		if code, _, _ := ann.get(url, nil); code != http.StatusOK {
			t.Fatalf("the printed address is %d", code)
		}
	}
	for n, base := range bases {
		code, body, _ := ann.get(base, nil)
		if code != http.StatusOK || !strings.Contains(body, "No endpoint is installed") {
			t.Errorf("program %d of two answers %d to the browser that it has let in", n+1, code)
		}
	}
}

// standard is the default address of the pages; docs and bookmarks have it.
const standard = "127.0.0.1:7433"

// If the standard address is taken, the host uses a free port; if a given address is taken, the error names the flag.
func TestAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	other, err := lc.Listen(t.Context(), "tcp", standard)
	if err == nil { // otherwise a different program has it, which is as good
		t.Cleanup(func() { _ = other.Close() })
	}
	url, _ := startAt(t, uihost.Options{}, slog.DiscardHandler)
	if strings.Contains(url, standard) || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("the address is %s, want a free port", url)
	}
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	host, err := uihost.New(uihost.Options{Listen: taken.Addr().String(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("%v, want an error that names --listen", err)
	}
}

func TestTheTokenLeadsToNoOtherHost(t *testing.T) {
	t.Parallel()
	url, _ := start(t, uihost.Options{})
	base, token, _ := strings.Cut(url, "/?token=")
	_, body, _ := newPerson(t).get(base+"//evil.example/?token="+token, nil)
	if strings.Contains(body, "url=//") || strings.Contains(body, `href="//`) {
		t.Errorf("it leads away: %s", body)
	}
}

func TestOtherMachinesNeedAuthentication(t *testing.T) {
	t.Parallel()
	for _, o := range []uihost.Options{
		{Listen: "0.0.0.0:0"}, {Listen: ":0"}, {Listen: "10.0.0.5:7433"}, {Listen: "edda.example:7433"},
		{Listen: "nonsense"},
		{Listen: "127.0.0.1:0", Auth: "none"}, {Listen: "127.0.0.1:0", Auth: "basic:"},
		{Listen: "127.0.0.1:0", Auth: "basic:/no/such/file"}, {Listen: "127.0.0.1:0", Auth: "header:"},
		{Listen: "127.0.0.1:0", Auth: "header:X-User@everywhere"},
		{Listen: "127.0.0.1:0", Hosts: []string{"edda.example"}},
	} {
		if _, err := uihost.New(o); !errors.Is(err, uihost.ErrUsage) {
			t.Errorf("%+v is %v", o, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "127.8.9.1:0"} {
		if _, err := uihost.New(uihost.Options{Listen: listen}); err != nil {
			t.Errorf("%s is refused: %v", listen, err)
		}
	}
}

func TestBasicAuthentication(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("# people\nann:s3cret:with colon\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := uihost.Options{Listen: "127.0.0.1:0", Auth: "basic:" + file}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620, 0o600} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := uihost.New(o)
		if refused := err != nil && strings.Contains(err.Error(), "chmod 600"); refused != (mode != 0o600) {
			t.Errorf("a file with the rights %o is %v", mode, err)
		}
	}
	url, _ := start(t, o)
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"nobody":         {nil, http.StatusUnauthorized},
		"a wrong word":   {func(r *http.Request) { r.SetBasicAuth("ann", "s3cret") }, http.StatusUnauthorized},
		"somebody else":  {func(r *http.Request) { r.SetBasicAuth("eve", "") }, http.StatusUnauthorized},
		"the right word": {func(r *http.Request) { r.SetBasicAuth("ann", "s3cret:with colon") }, http.StatusOK},
	} {
		code, _, head := newPerson(t).get(url, c.change)
		if code != c.code || (code == http.StatusUnauthorized) != (head.Get("WWW-Authenticate") != "") {
			t.Errorf("%s gets %d", name, code)
		}
	}
}

// A header is accepted if it comes once, from a trusted proxy, in a request for a host that no other site can point
// here: a script in a browser beside the proxy may set any header, but not the host.
func TestAProxySaysWhoItIs(t *testing.T) {
	t.Parallel()
	named, _ := start(t, uihost.Options{Auth: "header:X-User", Hosts: []string{"Edda.example"}})
	plain, _ := start(t, uihost.Options{Auth: "header:X-User"})
	far, _ := start(t, uihost.Options{Auth: "header:X-User@10.0.0.0/8,192.168.0.0/16"})
	for _, c := range []struct {
		what, url, host string
		users           []string
		code            int
	}{
		{"a proxy on this machine", plain, "", []string{"ann"}, http.StatusOK},
		{"without the header", plain, "", nil, http.StatusForbidden},
		{"with an empty one", plain, "", []string{""}, http.StatusForbidden},
		{"with a browser's header beside that of the proxy", plain, "", []string{"eve", "ann"}, http.StatusForbidden},
		{"from a machine that is no proxy", far, "", []string{"ann"}, http.StatusForbidden},
		{"for localhost", plain, "localhost:7433", []string{"ann"}, http.StatusOK},
		{"for an address", plain, "[2001:db8::7]:7433", []string{"ann"}, http.StatusOK},
		{"for another site", plain, "evil.example:7433", []string{"ann"}, http.StatusForbidden},
		{"for another site than the one that is given", named, "evil.example", []string{"ann"}, http.StatusForbidden},
		{"for a part of the name that is given", named, "example", []string{"ann"}, http.StatusForbidden},
		{"for the name that is given", named, "edda.Example:443", []string{"ann"}, http.StatusOK},
	} {
		code, _, _ := newPerson(t).get(c.url, func(r *http.Request) {
			r.Header["X-User"] = c.users
			if c.host != "" {
				r.Host = c.host
			}
		})
		if code != c.code {
			t.Errorf("%s it is %d, want %d", c.what, code, c.code)
		}
	}
}

// The end does not wait for open pages.
func TestItEndsWithPagesOpen(t *testing.T) {
	t.Parallel()
	url, stop := start(t, uihost.Options{Auth: "header:X-User"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"now?live=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", "ann")
	got, err := http.DefaultClient.Do(r)
	if err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", got, err)
	}
	defer func() { _ = got.Body.Close() }()
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: fragment") {
	}
	stop()
	for lines.Scan() { // to the end of the stream
	}
}

// Actors may change something, and nothing with ReadOnly.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for only, want := range map[bool]string{false: "Nothing was changed: ", true: "These pages are read-only"} {
		url, _ := start(t, uihost.Options{ReadOnly: only})
		base, token, _ := strings.Cut(url, "/?token=")
		ann := newPerson(t)
		ann.get(base+"/?token="+token, nil)
		code, body, _ := ann.get(base+"/endpoints/orders/pause", func(r *http.Request) {
			r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader("reason=x"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		})
		if !strings.Contains(body, want) || (code == http.StatusForbidden) != only {
			t.Errorf("read-only %v: it is %d: %s", only, code, body)
		}
	}
}
