// Package fields reads a file of settings in YAML or JSON (which is YAML), field by field. It gathers every mistake, by line and field,
// with what is allowed there. The place of a field is written as in rules[1].to; "" is the whole file.
package fields
