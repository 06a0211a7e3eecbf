package ui

import (
	"net/url"
	"strconv"
	"strings"

	"curfew/broker/operate"
)

// Local is to if it is a path of this site, otherwise "/".
func Local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

// With is a path with the query v, in which the given names have the given values; an empty value
// removes the name.
func With(path string, v url.Values, changes ...string) string {
	changed := url.Values{}
	for name, values := range v {
		changed[name] = values
	}
	for i := 0; i < len(changes); i += 2 {
		changed.Del(changes[i])
		if changes[i+1] != "" {
			changed.Set(changes[i], changes[i+1])
		}
	}
	if len(changed) == 0 {
		return path
	}
	return path + "?" + changed.Encode()
}

// At is a path with a query of names and values in pairs.
func At(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + v.Encode()
}

// QueueURL is the page of a queue.
func QueueURL(vhost, name string) string {
	return "/queue?name=" + url.QueryEscape(name) + "&vhost=" + url.QueryEscape(vhost)
}

// MessageURL is a page about one message of a queue: "/deadline" or one of those of dead letters.
func MessageURL(path, vhost, queue string, seq operate.Seq) string {
	return At(path, "vhost", vhost, "name", queue, "seq", Text(seq))
}

// DeadlineURL is the page of a message's deadline. id is the incarnation of the queue: in another one the number may be another message's.
func DeadlineURL(vhost, queue string, id uint64, seq operate.Seq) string {
	return MessageURL("/deadline", vhost, queue, seq) + "&queue=" + Text(id)
}

// Text is a number that names something.
func Text[T ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

// Seq is the number of the message that a query or a form names. Error: operate.ErrMessageGone.
func Seq(q url.Values) (operate.Seq, error) {
	n, err := strconv.ParseUint(q.Get("seq"), 10, 64)
	if err != nil {
		err = operate.ErrMessageGone
	}
	return operate.Seq(n), err
}

// Named is the queue that a query or a form names.
func Named(q url.Values) operate.QueueName {
	return operate.QueueName{VHost: q.Get("vhost"), Name: q.Get("name")}
}
