// Package ui is what the pages of the dashboard have in common: their elements, such as tables,
// forms and links, and what a page and a group of pages are. It knows no page.
package ui
