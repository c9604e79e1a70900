package main

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

const (
	mostForm     = 16 << 10 // bytes
	mostNote     = 200      // characters
	mostQuantity = 20
)

// goods are the goods of the shop.
var goods = []struct {
	Name  string
	Cents int64
}{{"A woollen hat", 1999}, {"A reading lamp", 4950}, {"A bronze kettle", 12000}}

// form is a visitor's input, and its faults.
type form struct {
	ID, Item, Quantity, Note string
	Faults                   []fault

	id       saga.ID
	quantity int
}

// fault is an error that the page shows beside its field.
type fault struct{ Field, Label, Text string }

// newForm has the id of the order that it will make: sent twice it is one order.
func newForm() form { return form{ID: uuid.NewString(), Item: goods[0].Name, Quantity: "1"} }

func readForm(v url.Values) form {
	f := form{ID: v.Get("id"), Item: v.Get("item"), Quantity: v.Get("quantity"), Note: strings.TrimSpace(v.Get("note"))}
	var err error
	if f.id, err = saga.ParseID(f.ID); err != nil || f.id.IsZero() {
		f.fault("id", "Order", "The form has no order id. Reload the page.")
		f.ID = uuid.NewString()
	}
	if f.price() == 0 {
		f.fault("item", "Item", "Choose a product from the list.")
	}
	if f.quantity, err = strconv.Atoi(f.Quantity); err != nil || f.quantity < 1 || f.quantity > mostQuantity {
		f.fault("quantity", "Quantity", "Enter a whole number from 1 to "+strconv.Itoa(mostQuantity)+".")
	}
	if utf8.RuneCountInString(f.Note) > mostNote || !utf8.ValidString(f.Note) || strings.ContainsRune(f.Note, 0) {
		f.fault("note", "Note", "Write at most "+strconv.Itoa(mostNote)+" characters of plain text.")
	}
	return f
}

func (f *form) fault(field, label, text string) {
	f.Faults = append(f.Faults, fault{Field: field, Label: label, Text: text})
}

// Fault returns the fault of a field, "" if it has no fault.
func (f form) Fault(field string) string {
	for _, fault := range f.Faults {
		if fault.Field == field {
			return fault.Text
		}
	}
	return ""
}

func (f form) price() int64 {
	for _, g := range goods {
		if g.Name == f.Item {
			return g.Cents
		}
	}
	return 0
}

func (f form) cents() int64 { return f.price() * int64(f.quantity) }

func (f form) message() PlaceOrder {
	return PlaceOrder{Order: f.id.String(), Item: f.Item, Cents: f.cents()}
}
