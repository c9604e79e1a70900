package act

import (
	"net/url"
	"strings"

	"github.com/edda-go/edda/internal/ui/words"
)

// Form is an action with the initial values of its fields.
type Form struct {
	*Action

	ID       string
	Address  string // relative to the first page
	Controls []Control
	Shell    string // the command that does the same
}

// Control is a field of a form, in the shape that a template needs.
type Control struct {
	ID, Name, Label, Hint string
	Kind                  string
	Value                 string
	Must                  bool
	Least, Most           int64
	Choices               []string
}

// values are names and values of fields in turn: NAME, VALUE, ...
type values []string

func (v values) fields() map[string]string {
	all := map[string]string{}
	for n := 0; n+1 < len(v); n += 2 {
		all[v[n]] = v[n+1]
	}
	return all
}

// Blank returns the form without values.
func (a *Action) Blank() Form { return a.form(nil) }

// form returns the form of an action.
func (a *Action) form(v values) Form { return a.filled(v.fields(), a.fields) }

func (a *Action) filled(values map[string]string, fields []field) Form {
	f := Form{Action: a, Address: strings.TrimPrefix(a.Pattern, "/"), ID: strings.ReplaceAll(a.Name, ".", "-")}
	shell := map[string]string{}
	for _, field := range fields {
		value := values[field.name]
		if shell[field.name] = value; value == "" && field.must {
			shell[field.name] = field.example
		}
		if field.kind == target {
			f.ID += "-" + url.PathEscape(value)
		}
		if a.inPath(field) {
			f.Address = strings.ReplaceAll(f.Address, "{"+field.name+"}", url.PathEscape(value))
			continue
		}
		f.Controls = append(f.Controls, Control{
			Name: field.name, Label: field.label, Hint: field.hint, Kind: string(field.kind), Value: value,
			Must: field.must, Least: field.least, Most: field.most, Choices: field.choices,
		})
	}
	for n := range f.Controls {
		f.Controls[n].ID = f.ID + "-" + f.Controls[n].Name
	}
	f.Shell = a.command(Input{values: shell})
	return f
}

// again returns a form with all submitted values as hidden fields, replaced by those in keep.
func (a *Action) again(in Input, keep map[string]string) Form {
	all := map[string]string{}
	for name, value := range in.values {
		all[name] = value
	}
	for name, value := range keep {
		all[name] = value
	}
	f := a.filled(all, a.allFields())
	f.ID += "-again"
	var kept []Control
	for _, c := range f.Controls {
		if c.Name == typed.name || c.Value == "" {
			continue
		}
		c.Kind, c.ID = string(hidden), f.ID+"-"+c.Name
		kept = append(kept, c)
	}
	f.Controls, f.Shell = kept, a.command(Input{values: all})
	return f
}

// shell returns a command line. Arguments are quoted if necessary.
func shell(command string, args ...string) string {
	for _, arg := range args {
		command += " " + words.Quoted(arg)
	}
	return command
}

// flags adds the flags whose fields have a value: flag, field, ...
func (in Input) flags(command string, flags ...string) string {
	for n := 0; n+1 < len(flags); n += 2 {
		if value := in.text(flags[n+1]); value != "" {
			command += " --" + flags[n] + " " + words.Quoted(value)
		}
	}
	return command
}

// because adds the reason.
func (in Input) because(command string) string { return in.flags(command, "reason", "reason") }
