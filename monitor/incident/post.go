package incident

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// poster posts to one URL, or requests it.
type poster struct {
	url    string
	client *http.Client
}

// answerTimeout is how long a receiver may take to answer.
const answerTimeout = 5 * time.Second

// newPoster returns a poster to address that follows no redirect: what is sent is signed, and meant for one address only.
func newPoster(address string) *poster {
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &poster{address, &http.Client{Timeout: answerTimeout, CheckRedirect: refuse}}
}

// do posts JSON or requests the URL once. An answer other than 2xx is an error, and permanent unless it is 408, 429 or 5xx; Retry-After in seconds
// is obeyed.
func (p *poster) do(ctx context.Context, method string, body []byte, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, method, p.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("incident: send: %w", withoutURL(err)))
	}
	req.Header = header
	req.Header.Set("User-Agent", "curfew")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("incident: send: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be used again; a long answer costs it
	code := answer.StatusCode
	err = fmt.Errorf("incident: send: the receiver answered %d", code)
	switch {
	case code/100 == 2:
		return nil
	case code/100 < 4 || isPermanent(code):
		return backoff.Permanent(err)
	}
	if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds >= 0 {
		return errors.Join(err, backoff.RetryAfter(seconds))
	}
	return err
}

// withoutURL removes the address from err: it may contain a secret, and errors are logged.
func withoutURL(err error) error {
	if u, is := errors.AsType[*url.Error](err); is {
		return u.Err
	}
	return err
}

// isPermanent reports whether an answer with this status will be the same next time.
func isPermanent(status int) bool {
	return status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}
