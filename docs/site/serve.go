package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// listen serves the site until ctx ends. A page that is requested after a file has changed is built again.
func (set settings) listen(ctx context.Context) error {
	server := &http.Server{Addr: set.serve, Handler: set.handler(ctx), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	_, _ = fmt.Fprintf(os.Stdout, "serving at %s\n", set.serve)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (set settings) handler(ctx context.Context) http.Handler {
	files := http.FileServer(http.Dir(set.out))
	var lock sync.Mutex
	built := set.changed()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		newest := set.changed()
		page := path.Ext(r.URL.Path) == ".html" || strings.HasSuffix(r.URL.Path, "/")
		if page && newest.After(built) {
			if _, err := set.build(ctx); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			built = newest
		}
		w.Header().Set("Cache-Control", "no-store")
		files.ServeHTTP(w, r)
	})
}

// changed is when a page was last written to.
func (set settings) changed() (newest time.Time) {
	note := func(info fs.FileInfo) {
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if info, err := os.Stat(filepath.Join(set.root, homePage)); err == nil {
		note(info)
	}
	_ = filepath.WalkDir(filepath.Join(set.root, "docs"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return nil //nolint:nilerr // a file that is gone has not changed
		}
		if info, err := entry.Info(); err == nil {
			note(info)
		}
		return nil
	})
	return newest
}
