// Package content turns what a message consists of into text: its body, its properties and the
// fields of tables.
//
// A body that is not readable text becomes a dump of its first bytes. Making the text safe for a
// page is left to what draws it.
package content
