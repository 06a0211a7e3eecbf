// Package ui is what the pages of the dashboard have in common: their elements, such as tables,
// forms and links, and the types of a page and a group of pages. It does not know any of the pages.
package ui
