// Package ui has what pages are made of: elements, forms and tables, numbers and times as text, a message as text, the timeline, the
// histogram and the lines in lists, and the style sheet and scripts (files).
package ui
