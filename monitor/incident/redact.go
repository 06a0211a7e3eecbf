package incident

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"
)

var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"']+`)

// minSecret is the least length of a part of a URL that is treated as a secret. Shorter ones occur in ordinary words.
const minSecret = 4

// redact removes all URLs from a text, and all parts of the sink's own URL: any of them may be the token.
func redact(sinkURL, text string) string {
	text = anyURL.ReplaceAllString(text, "***")
	for _, part := range parts(sinkURL) {
		text = strings.ReplaceAll(text, part, "***")
	}
	return text
}

// parts are the pieces of the sink's URL that its errors must not repeat, the longest first.
func parts(sinkURL string) (list []string) {
	u, err := url.Parse(sinkURL)
	if err != nil {
		return nil // such a URL has no sink
	}
	password, _ := u.User.Password()
	texts := []string{u.User.Username(), password, u.User.String(), u.Host, u.Path, u.EscapedPath(), u.Opaque}
	for _, values := range u.Query() {
		texts = append(texts, values...)
	}
	for _, text := range texts {
		list = append(list, text)
		for _, part := range strings.Split(text, "/") {
			list = append(list, part)
			list = append(list, strings.FieldsFunc(part, func(c rune) bool { return strings.ContainsRune(":-,@", c) })...)
		}
	}
	list = slices.DeleteFunc(list, func(part string) bool { return len(part) < minSecret || slices.Contains(publicHosts, part) })
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(list)
}

// publicHosts are words in the URLs of some services that are not secret.
var publicHosts = []string{"webhook", "hook", "telegram", "join", "shoutrrr"}

// statusInText finds a status in an error's text: "... status code: 404 Not Found", "... returned status 400".
var statusInText = regexp.MustCompile(`(?i)status[a-z ]*:? *"?([1-5]\d\d)\b|\b([1-5]\d\d) [A-Z][a-z]`)

// statusOf returns the HTTP status in an error of the library; 0 if it has none.
func statusOf(err error) int {
	if answer, is := errors.AsType[jsonclient.Error](err); is {
		return answer.StatusCode
	}
	found := statusInText.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}
	status, _ := strconv.Atoi(found[1] + found[2])
	return status
}
