package view

import (
	"fmt"
	"slices"
	"strings"
)

// View shows a thing: an object for programs, and parts for people from top to bottom.
type View struct {
	JSON    Object
	Parts   []Part
	Mermaid string // a flowchart of Mermaid, if the thing is a graph
}

// Part is a [Line], a [Block], [Fields] or a [Table].
type Part interface{ part() }

// Line is a text on one line.
type Line string

// Block is a text of several lines, which is set apart: an error, a body, a state.
type Block string

// Fields are names and values below each other. A field without a value is left out.
type Fields []field

// field is a name for people, and the value.
type field struct{ Name, Value string }

// Table has rows below headings. An empty cell has no value; a cell that is a blank continues the row above it.
type Table struct {
	Columns []string
	Rows    [][]string
}

func (Line) part()   {}
func (Block) part()  {}
func (Fields) part() {}
func (Table) part()  {}

func linef(format string, args ...any) Line { return Line(fmt.Sprintf(format, args...)) }

// fields builds Fields from names and values in turn.
func fields(pairs ...string) (all Fields) {
	for n := 0; n+1 < len(pairs); n += 2 {
		all = append(all, field{pairs[n], pairs[n+1]})
	}
	return all
}

// List shows several things of one kind.
type List struct {
	Name    string   // of the list in JSON
	Columns []string // the headings
	Rows    []Row
	Next    string // where the next page begins, "" at the end and for a list without pages

	next   any // Next in JSON, nil for a list without pages
	bodies bool
}

// Row is one thing of a list: its object, a text for each column, and its body if that was requested.
type Row struct {
	JSON  Object
	Cells []string
	Body  string
}

// listOf builds the list of all; columns has bars between the headings.
func listOf[T any](name, columns string, all []T, of func(T) Row) List {
	l := List{Name: name, Columns: strings.Split(columns, "|")}
	for _, one := range all {
		l.Rows = append(l.Rows, of(one))
	}
	return l
}

// before returns the list as a page; the next page begins at next.
func (l List) before(next string) List {
	l.Next, l.next = next, next
	return l
}

// View returns the list as an object, and as one table; or as a line for each thing, with its body below.
func (l List) View() View {
	v := View{JSON: Object{l.Name, objects(l.Rows, func(r Row) Object { return r.JSON })}}
	if l.next != nil {
		v.JSON = append(v.JSON, "next", l.next)
	}
	table := Table{Columns: l.Columns}
	for _, r := range l.Rows {
		if l.bodies {
			known := slices.DeleteFunc(slices.Clone(r.Cells), func(cell string) bool { return cell == "" })
			v.Parts = append(v.Parts, Line(strings.Join(known, "  ")), Block(r.Body))
		} else {
			table.Rows = append(table.Rows, r.Cells)
		}
	}
	if !l.bodies {
		v.Parts = []Part{table}
	}
	return v
}
