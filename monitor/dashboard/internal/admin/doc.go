// Package admin is the pages of policies, virtual hosts and users.
package admin
