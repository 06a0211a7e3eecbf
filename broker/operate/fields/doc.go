// Package fields reads what the tags of structs say about the requests and the results of operations, so that every face has the same names, kinds, bounds
// and errors: Of reads them, Decode makes a request of JSON values, Check holds it to its bounds, and Shown and ObjectOf choose what a face shows of a row.
package fields
