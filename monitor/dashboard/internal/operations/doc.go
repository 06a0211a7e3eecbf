// Package operations is the pages that are derived from the operations of broker/operate: a list is a table, any other operation is a form, and one that
// deletes asks for confirmation. What a page has is in the Page of each operation; what its fields are, in the tags of its request and its rows.
//
// Pages that need more than that are drawn by the other packages beside this one.
package operations
