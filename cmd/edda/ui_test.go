package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
)

func TestUIServesUntilItIsInterrupted(t *testing.T) {
	w := migrated(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, in := io.Pipe()
	var complaints bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"ui", "--listen", "127.0.0.1:0", "--database", pgdev.DSN(t), "--schema", w.schema},
			streams{in: strings.NewReader(""), out: in, err: &complaints})
		_ = in.Close()
	}()
	said := make([]byte, 200)
	n, err := out.Read(said)
	if err != nil {
		t.Fatalf("it says nothing: %v, %s", err, complaints.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`).FindString(string(said[:n]))
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	for _, address := range []string{url, strings.Split(url, "?")[0]} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Do(r)
		if err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%s is %v, %v", address, got, err)
		}
		_ = got.Body.Close()
	}
	cancel()
	if code := <-ended; code != exitDone {
		t.Errorf("interrupted it ends with %d: %s", code, complaints.String())
	}
}

func TestUIRefusesToBeOpenToAll(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ui", "--listen", "0.0.0.0:7433"}, {"ui", "--auth", "none"}, {"ui", "--listen", "7433"},
	} {
		var complaints bytes.Buffer
		code := run(t.Context(), append(args, "--database", "postgres://127.0.0.1:1/none"),
			streams{in: strings.NewReader(""), out: io.Discard, err: &complaints})
		if code != exitUsage {
			t.Errorf("%s ends with %d: %s", args, code, complaints.String())
		}
	}
}
