package atom

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/servicebus"
)

const (
	busSpace   = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	countSpace = "http://schemas.microsoft.com/netservices/2011/06/servicebus"

	zeroTime = "0001-01-01T00:00:00Z" // not known
)

// entry is an entity, a rule or the namespace as it is read and written.
type entry[T any] struct {
	XMLName xml.Name   `xml:"http://www.w3.org/2005/Atom entry"`
	ID      string     `xml:"id"`
	Title   string     `xml:"title"`
	Updated string     `xml:"updated,omitempty"`
	Content content[T] `xml:"content"`
}

type content[T any] struct {
	Type string `xml:"type,attr"`
	Is   T      `xml:",any"`
}

// namespaceInfo describes the namespace: what is not known has its zero value.
type namespaceInfo struct {
	XMLName       xml.Name
	CreatedTime   string
	MessagingSKU  string
	ModifiedTime  string
	Name          string
	NamespaceType string
}

// feed is a list of entities.
type feed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Entries any      // []entry[entity] or []entry[rule]
}

// entity is a QueueDescription, a TopicDescription or a SubscriptionDescription.
type entity struct {
	XMLName                                   xml.Name
	LockDuration                              string  `xml:",omitempty"`
	MaxSizeInMegabytes                        int     `xml:",omitempty"`
	MaxMessageSizeInKilobytes                 int64   `xml:",omitempty"`
	RequiresDuplicateDetection                *bool   `xml:",omitempty"`
	RequiresSession                           *bool   `xml:",omitempty"`
	DefaultMessageTimeToLive                  string  `xml:",omitempty"`
	DeadLetteringOnMessageExpiration          *bool   `xml:",omitempty"`
	DeadLetteringOnFilterEvaluationExceptions *bool   `xml:",omitempty"` // this and the next ones are read by JavaScript's client
	DuplicateDetectionHistoryTimeWindow       string  `xml:",omitempty"`
	DefaultRuleDescription                    *rule   `xml:",omitempty"`
	MaxDeliveryCount                          *int64  `xml:",omitempty"`
	EnableBatchedOperations                   *bool   `xml:",omitempty"`
	SizeInBytes                               *int64  `xml:",omitempty"`
	MessageCount                              *int64  `xml:",omitempty"`
	Status                                    string  `xml:",omitempty"`
	ForwardTo                                 string  `xml:",omitempty"`
	UserMetadata                              string  `xml:",omitempty"`
	CreatedAt                                 string  `xml:",omitempty"`
	UpdatedAt                                 string  `xml:",omitempty"`
	AccessedAt                                string  `xml:",omitempty"`
	SupportOrdering                           *bool   `xml:",omitempty"`
	AutoDeleteOnIdle                          string  `xml:",omitempty"`
	EnablePartitioning                        *bool   `xml:",omitempty"`
	CountDetails                              *counts `xml:",omitempty"`
	SubscriptionCount                         *int    `xml:",omitempty"`
	ForwardDeadLetteredMessagesTo             string  `xml:",omitempty"`
	EntityAvailabilityStatus                  string  `xml:",omitempty"`
	EnableExpress                             *bool   `xml:",omitempty"`
}

// counts have a prefix as Azure writes it: JavaScript's client looks for one.
type counts struct {
	Space                          string `xml:"xmlns:d2p1,attr"`
	ActiveMessageCount             int    `xml:"d2p1:ActiveMessageCount"`
	DeadLetterMessageCount         int    `xml:"d2p1:DeadLetterMessageCount"`
	ScheduledMessageCount          int    `xml:"d2p1:ScheduledMessageCount"`
	TransferMessageCount           int    `xml:"d2p1:TransferMessageCount"`
	TransferDeadLetterMessageCount int    `xml:"d2p1:TransferDeadLetterMessageCount"`
}

// described is an entity that a client wants to make.
func (e *entity) described(name string) (d servicebus.Entity, err error) {
	if e.MaxDeliveryCount != nil {
		if d.Properties.MaxDeliveryCount = *e.MaxDeliveryCount; *e.MaxDeliveryCount == 0 {
			return d, errNoDelivery
		}
	}
	for _, span := range e.spans() {
		if err := span.unfit(); err != nil {
			return d, err
		}
	}
	d.Name = name
	p := &d.Properties
	p.LockDuration, p.DefaultMessageTimeToLive, p.AutoDeleteOnIdle, p.UserMetadata = e.LockDuration, e.DefaultMessageTimeToLive, e.AutoDeleteOnIdle, e.UserMetadata
	p.EnablePartitioning, p.EnableBatchedOperations = isSet(e.EnablePartitioning), e.EnableBatchedOperations
	p.ForwardTo, p.ForwardDeadLetteredMessagesTo = e.ForwardTo, e.ForwardDeadLetteredMessagesTo
	p.RequiresSession, p.RequiresDuplicateDetection = isSet(e.RequiresSession), isSet(e.RequiresDuplicateDetection)
	p.DeadLetteringOnMessageExpiration = isSet(e.DeadLetteringOnMessageExpiration)
	return d, nil
}

var errNoDelivery = errors.New("MaxDeliveryCount: at least 1")

// settings fills in what the arguments of a queue or an exchange say.
func (e *entity) settings(args amqp.Table) {
	e.DefaultMessageTimeToLive, e.AutoDeleteOnIdle = duration(args["x-message-ttl"], servicebus.Forever), duration(args["x-auto-delete-on-idle"], servicebus.Forever)
	created, _ := amqp.Integer(args[servicebus.CreatedArg])
	updated, given := amqp.Integer(args[servicebus.UpdatedArg])
	if !given {
		updated = created
	}
	e.UserMetadata, _ = args[servicebus.MetadataArg].(string)
	e.Status, e.CreatedAt, e.UpdatedAt, e.AccessedAt = "Active", instant(created), instant(updated), zeroTime
	e.EnablePartitioning = new(args[servicebus.PartitionedArg] == true)
	e.EnableBatchedOperations, e.SupportOrdering, e.EnableExpress, e.DeadLetteringOnFilterEvaluationExceptions = new(args[servicebus.BatchedArg] != false), new(true), new(false), new(false)
	e.DuplicateDetectionHistoryTimeWindow, e.EntityAvailabilityStatus = "PT10M", "Available"
}

// changes are the arguments that an update changes; nil removes one. What an update leaves out stays as it is. The error is, in
// Azure's words, that what it changes cannot be changed.
func (e *entity) changes(was *entity) (args amqp.Table, err error) {
	kind := strings.TrimSuffix(was.XMLName.Local, "Description")
	if e.XMLName.Local != was.XMLName.Local {
		return nil, errors.New("the entity is a " + kind)
	}
	if name, is := e.fixed(was); name != "" {
		return nil, fmt.Errorf("The value for the %s property of an existing %s cannot be changed. It is %v.", name, kind, is) //nolint:staticcheck // Azure's words
	}
	if given := e.DeadLetteringOnFilterEvaluationExceptions; given != nil && *given != isSet(was.DeadLetteringOnFilterEvaluationExceptions) {
		return nil, errors.New("DeadLetteringOnFilterEvaluationExceptions: it cannot be turned on")
	}
	args = amqp.Table{}
	switch n, is := e.MaxDeliveryCount, was.MaxDeliveryCount; {
	case n == nil || is != nil && *n == *is || was.XMLName.Local == "TopicDescription":
	case *n == 0:
		return nil, errNoDelivery
	default:
		args["x-max-delivery-count"] = *n
	}
	if e.UserMetadata != "" && e.UserMetadata != was.UserMetadata {
		args[servicebus.MetadataArg] = e.UserMetadata
	}
	if given := e.EnableBatchedOperations; given != nil && *given != isSet(was.EnableBatchedOperations) {
		if args[servicebus.BatchedArg] = nil; !*given {
			args[servicebus.BatchedArg] = false
		}
	}
	if given := e.DeadLetteringOnMessageExpiration; given != nil && *given != isSet(was.DeadLetteringOnMessageExpiration) {
		if args[policy.DeadLetterExpiredArg] = nil; !*given {
			args[policy.DeadLetterExpiredArg] = false
		}
	}
	for name, span := range e.spans() {
		n, wrong := servicebus.ParseDuration(span.given)
		m, _ := servicebus.ParseDuration(was.spans()[name].given)
		if span.given == "" || wrong == nil && (n == m || min(n, m) >= servicebus.ForeverMillis) {
			continue
		}
		args[name] = nil
		err = cmp.Or(err, span.unfit(), servicebus.SetSpan(args, name, span.property, span.given))
	}
	return args, err
}

// span is a property that is a duration.
type span struct{ property, given string }

// spans are the durations of an entity, by argument.
func (e *entity) spans() map[string]span {
	return map[string]span{
		"x-message-ttl": {"DefaultMessageTimeToLive", e.DefaultMessageTimeToLive}, "x-auto-delete-on-idle": {"AutoDeleteOnIdle", e.AutoDeleteOnIdle}, "x-lock-duration": {"LockDuration", e.LockDuration},
	}
}

// unfit refuses a duration that Curfew would not keep as it is given.
func (s span) unfit() error {
	if n, err := servicebus.ParseDuration(s.given); err == nil && n > policy.MaxTTLMillis && n < servicebus.ForeverMillis {
		return fmt.Errorf("%s: %s is more than ten years, P3650D; leave it out for no limit, or give %s", s.property, s.given, servicebus.Forever)
	}
	return nil
}

// fixed names a property that Curfew does not keep, and that is given as another than it is; "": none. What an entity leaves out is as it is.
func (e *entity) fixed(was *entity) (name string, is any) {
	differs := func(given, is *bool) bool { return given != nil && *given != isSet(is) }
	for _, p := range []struct {
		name    string
		differs bool
		is      any
	}{
		{"RequiresSession", differs(e.RequiresSession, was.RequiresSession), false},
		{"RequiresDuplicateDetection", differs(e.RequiresDuplicateDetection, was.RequiresDuplicateDetection), false},
		{"EnablePartitioning", differs(e.EnablePartitioning, was.EnablePartitioning), isSet(was.EnablePartitioning)},
		{"Status", e.Status != "" && e.Status != was.Status, was.Status},
		{"MaxSizeInMegabytes", e.MaxSizeInMegabytes != 0 && e.MaxSizeInMegabytes != was.MaxSizeInMegabytes, was.MaxSizeInMegabytes},
		{"MaxMessageSizeInKilobytes", e.MaxMessageSizeInKilobytes != 0, "that of Curfew"},
		{"ForwardTo", e.ForwardTo != "", "not set"},
		{"ForwardDeadLetteredMessagesTo", e.ForwardDeadLetteredMessagesTo != "", "not set"},
	} {
		if p.differs {
			return p.name, p.is
		}
	}
	return "", nil
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// instant is a time in Unix ms as text; 0: not known.
func instant(unixMillis int64) string {
	if unixMillis == 0 {
		return zeroTime
	}
	return time.UnixMilli(unixMillis).UTC().Format("2006-01-02T15:04:05.000Z")
}

// duration is an argument of ms as a duration of ISO 8601.
func duration(v any, absent string) string {
	n, ok := amqp.Integer(v)
	if !ok {
		return absent
	}
	text := "PT"
	if days := n / 86_400_000; days > 0 {
		text = fmt.Sprintf("P%dDT", days)
	}
	n %= 86_400_000
	for _, unit := range []struct {
		millis int64
		name   string
	}{{3_600_000, "H"}, {60_000, "M"}} {
		if k := n / unit.millis; k > 0 {
			text += fmt.Sprint(k) + unit.name
			n %= unit.millis
		}
	}
	switch {
	case n > 0 && n%1000 == 0:
		text += fmt.Sprintf("%dS", n/1000)
	case n > 0:
		text += fmt.Sprintf("%d.%03dS", n/1000, n%1000)
	}
	if text == "PT" {
		return "PT0S"
	}
	return strings.TrimSuffix(text, "T")
}

// idBase begins an address from which JavaScript's client takes names.
const idBase = "https://servicebus/"

// newEntry describes the entity at a path.
func newEntry(path string, e entity) entry[entity] {
	title, subscription := servicebus.Split(path)
	if e.XMLName.Local == "SubscriptionDescription" {
		title = subscription
	}
	return entry[entity]{ID: idBase + path, Title: title, Updated: zeroTime, Content: content[entity]{"application/xml", e}}
}

// write writes an answer.
func write(w http.ResponseWriter, status int, v any) {
	text, err := xml.Marshal(v)
	if err != nil { // its types are those above
		panic("atom: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/atom+xml;type=entry;charset=utf-8")
	w.WriteHeader(status)
	text = bytes.ReplaceAll(text, []byte("&#39;"), []byte("'")) // clients look for texts as Azure writes them
	_, _ = w.Write(text)                                        // the client has gone
}

type problem struct {
	XMLName xml.Name `xml:"Error"`
	Code    int
	Detail  string
}
