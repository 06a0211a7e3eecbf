// Package admin has the operations on users, what they may do, and policies: values of package operate, from which their faces are derived.
package admin
