// Package admin is the pages of policies and users.
package admin
