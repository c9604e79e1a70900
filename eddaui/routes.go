package eddaui

import (
	"context"
	"net/http"
	"time"

	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/page"
)

// route is a page: its address, the name of its template, and the function that reads it.
type route struct {
	pattern  string
	template string
	read     func(s *page.Source, ctx context.Context, a page.Ask) (page.Page, error)
}

// pages are all pages. Their order has no meaning.
var pages = []route{
	{"/{$}", "now", (*page.Source).Now},
	{"/now", "now", (*page.Source).Now},
	{"/find", "find", (*page.Source).Find},
	{"/endpoints/{endpoint}", "endpoint", (*page.Source).Endpoint},
	{"/dead", "dead", (*page.Source).Dead},
	{"/dead/groups/{group}", "group", (*page.Source).Group},
	{"/dead/{number}", "letter", (*page.Source).Letter},
	{"/sagas", "sagas", (*page.Source).Sagas},
	{"/sagas/{saga}", "instances", (*page.Source).Instances},
	{"/sagas/{saga}/{key}", "instance", (*page.Source).One},
	{"/instance", "instance", (*page.Source).One},
	{"/jobs/{number}", "job", (*page.Source).Job},
	{"/messages/{id}", "message", (*page.Source).Message},
	{"/conversations/{id}", "conversation", (*page.Source).Conversation},
	{"/manifests", "schedules", (*page.Source).Schedules},
	{"/manifests/{manifest}", "manifest", (*page.Source).Manifest},
	{"/runs/{id}", "run", (*page.Source).Run},
	{"/limits", "limits", (*page.Source).Limits},
	{"/border", "border", (*page.Source).Border},
	{"/processes", "processes", (*page.Source).Processes},
	{"/database", "database", (*page.Source).Database},
	{"/map", "map", (*page.Source).Map},
	{"/audit", "audit", (*page.Source).Changes},
}

// rests are the pages that are slow to read: while they are open, they are read no more often than this.
var rests = map[string]time.Duration{"database": 5 * time.Second, "map": 5 * time.Second}

// action is a change with its handler.
type action struct {
	pattern string
	rights  []act.Right // any of them is enough
	do      http.HandlerFunc
}

// routes returns the handler of the whole UI. An action is a POST from this site whose actor has the right. Every
// other POST is refused, so that a forgotten address is closed.
func (u *UI) routes(actions []action) http.Handler {
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.Handle("GET "+p.pattern, u.page(p))
	}
	for _, a := range actions {
		mux.Handle("POST "+a.pattern, u.needs(a.rights, a.do))
	}
	mux.Handle("POST /", u.needs(anything, http.HandlerFunc(u.noAction)))
	mux.Handle("GET /", http.HandlerFunc(u.noPage))
	all := http.NewServeMux()
	all.Handle("GET /static/", u.look.files())
	all.Handle("/", u.authorized(asJSON(mux)))
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.refuse(w, r, "This request came from a page of a different site, so it was refused.")
	}))
	return guarded(cross.Handler(all))
}

func (u *UI) noPage(w http.ResponseWriter, r *http.Request) {
	u.complain(w, r, http.StatusNotFound, "No page has this address.")
}

func (u *UI) noAction(w http.ResponseWriter, r *http.Request) {
	u.complain(w, r, http.StatusNotFound, "No action has this address.")
}
