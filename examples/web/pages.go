package main

import (
	"bytes"
	"fmt"
	"net/http"
)

// message is a page with a single message.
type message struct{ Title, Text string }

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, "form.html", newForm())
}

// order shows the current state of an order. The script of the page follows later changes.
func (s *site) order(w http.ResponseWriter, r *http.Request) {
	id, ok := orderID(r)
	if !ok {
		s.complain(w, r, http.StatusNotFound, "There is no such order.")
		return
	}
	v, found, err := s.look(r.Context(), id)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case !found:
		s.complain(w, r, http.StatusNotFound, "There is no such order.")
	default:
		s.show(w, r, http.StatusOK, "order.html", v)
	}
}

func (s *site) complain(w http.ResponseWriter, r *http.Request, status int, text string) {
	s.show(w, r, status, "message.html", message{Title: http.StatusText(status), Text: text})
}

// fail logs the reason, and shows the visitor an error of the server.
func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // he has gone
	}
	s.log.Error("web: a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	s.complain(w, r, http.StatusInternalServerError, "Something went wrong here. Nothing is lost: send the form "+
		"again, it cannot order twice.")
}

// show writes a page when it is whole.
func (s *site) show(w http.ResponseWriter, _ *http.Request, status int, page string, data any) {
	var whole bytes.Buffer
	if err := s.pages[page].ExecuteTemplate(&whole, "layout", data); err != nil {
		s.log.Error("web: a page cannot be written", "page", page, "error", err)
		http.Error(w, fmt.Sprintf("page %s is broken", page), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = whole.WriteTo(w)
}

// Goods are the shop's, for the form.
func (form) Goods() (all []struct{ Name, Price string }) {
	for _, g := range goods {
		all = append(all, struct{ Name, Price string }{g.Name, euros(g.Cents)})
	}
	return all
}

// Most is the greatest quantity.
func (form) Most() int { return mostQuantity }

// MostNote is the length of the longest note.
func (form) MostNote() int { return mostNote }
