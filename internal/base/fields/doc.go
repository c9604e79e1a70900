// Package fields finds the fields of a type that encoding/json does not carry: a value comes back without them.
package fields
