package transport

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"
)

// IsPermanent reports whether an answer with this status will be the same next time.
func IsPermanent(status int) bool {
	return status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// statusInText finds a status in an error's text: "... status code: 404 Not Found", "... returned status 400".
var statusInText = regexp.MustCompile(`(?i)status[a-z ]*:? *"?([1-5]\d\d)\b|\b([1-5]\d\d) [A-Z][a-z]`)

// StatusOf returns the HTTP status in an error of the library; 0 if it has none.
func StatusOf(err error) int {
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
