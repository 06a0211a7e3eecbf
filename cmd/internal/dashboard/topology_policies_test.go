package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	brokerpolicy "curfew/broker/policy"
)

var wasPattern = regexp.MustCompile(`name="was" value="([^"]+)"`)

// TestAPolicyIsNotReplacedUnseen: of two who change a policy at the same time, the second is told, and so is whoever makes one that exists.
func TestAPolicyIsNotReplacedUnseen(t *testing.T) {
	s := newSite(t).logIn("root")
	set := func(was, name, definition string) answer {
		return s.post("/policy/new", url.Values{
			"token": {s.token("/policy/new")}, "do": {"set"}, "was": {was}, "vhost": {"/"}, "name": {name}, "pattern": {"^q$"}, "apply-to": {"queues"}, "priority": {"0"},
			"definition": {definition},
		})
	}
	seen := func() string {
		found := wasPattern.FindStringSubmatch(s.get("/policy/new?vhost=/&name=ttl").body)
		require.NotNil(t, found)
		return html.UnescapeString(found[1])
	}
	definition := func(name string) brokerpolicy.Definition {
		vh, _ := s.b.VHost("/")
		p, ok := vh.Policies.Get(brokerpolicy.User, name)
		require.True(t, ok)
		return p.Definition
	}
	require.Contains(t, s.get("/policy/new").body, `<input name="pattern" value="" required>`)
	require.Contains(t, set("", "ttl", `{"message-ttl": 1000}`).body, "Policy set.")
	require.Contains(t, s.get("/policies").body, `href="/policy/delete?name=ttl&amp;vhost=%2F"`)
	require.Contains(t, s.get("/policies").body, "message-ttl = <b>1 s</b>", "a time is not a number of ms")
	typed := `{"dead-letter-routing-key": "<a&b>"}`
	require.Contains(t, set("", "typed", typed).body, "Policy set.")
	require.Contains(t, html.UnescapeString(s.get("/policies").body), "<a&b>")
	require.Contains(t, html.UnescapeString(s.get("/policy/new?vhost=/&name=typed").body), "{\n  "+typed[1:len(typed)-1]+"\n}", "as it was typed")
	again := set("", "ttl", `{"message-ttl": 2000}`)
	require.Equal(t, http.StatusBadRequest, again.status)
	require.Contains(t, again.body, "A policy with this name already exists.")

	mine, theirs := seen(), seen()
	require.Contains(t, set(theirs, "ttl", `{"message-ttl": 3000}`).body, "Policy set.")
	late := set(mine, "ttl", `{"max-length": 5}`)
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, late.body, "Somebody else has changed this policy since then. Nothing was changed")
	require.Contains(t, late.body, "max-length", "the form is as it was typed")
	require.Equal(t, brokerpolicy.Definition{"message-ttl": int64(3000)}, definition("ttl"))
	require.Contains(t, set(mine, "copy", `{"max-length": 5}`).body, "Policy set.", "under another name it replaces nothing")
	require.Contains(t, set(seen(), "ttl", `{"max-length": 6}`).body, "Policy set.")
	require.Equal(t, brokerpolicy.Definition{"max-length": int64(6)}, definition("ttl"))
}

// TestANewUserReplacesNobody, also if the address of the form names somebody.
func TestANewUserReplacesNobody(t *testing.T) {
	s := newSite(t).logIn("root")
	page := s.get("/user/new?name=eye").body
	require.Contains(t, page, `name="name" value="eye"`)
	require.Nil(t, wasPattern.FindStringSubmatch(page))
	a := s.post("/user/new", url.Values{"token": {s.token("/user/new")}, "was": {""}, "name": {"eye"}, "password": {"x"}})
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "A user with this name already exists.")
	a = s.post("/user/new", url.Values{"token": {s.token("/user/new")}, "name": {"eye"}, "password": {"x"}})
	require.Contains(t, a.body, "A user with this name already exists.", "a form that is to make something has no version")
	a = s.post("/user/new", url.Values{"token": {s.token("/user/new")}, "name": {"untagged"}, "password": {"x"}})
	require.Contains(t, a.body, "User created.")
	was := wasPattern.FindStringSubmatch(s.get("/user?name=untagged").body)
	require.NotNil(t, was)
	a = s.post("/user/permission", url.Values{"token": {s.token("/user/new")}, "was": {was[1]}, "name": {"untagged"}, "vhost": {"/"}, "read": {".*"}})
	require.Contains(t, a.body, "Permissions changed.")
}
