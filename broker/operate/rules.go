package operate

import "strings"

// Operation names an operation in records.
type Operation string

var operationWords = strings.NewReplacer("_", " ", "vhost", "virtual host", "rabbitmq", "RabbitMQ")

// Words says the operation to people: set_policy is "set policy".
func (op Operation) Words() string { return operationWords.Replace(string(op)) }

// ManyAttempts is the record of further attempts within a minute that were refused or failed. It is not an operation that users do.
const ManyAttempts Operation = "many_attempts"

// Publish is the operation that publishes a message, by each face.
const Publish Operation = "publish"

// need says when an operation requires a permission on its queue.
type need uint8

const (
	no            need = iota
	Always             // of everybody
	UnlessMonitor      // not of users with the role Monitor, who see every queue
)

// Rule is what an operation requires. An operation in a virtual host also requires some permission in it, unless its role is Administrator.
type Rule struct {
	Role  Role
	Looks bool // it changes nothing, so users with the role Monitor may do it in every virtual host
	Read  need // of the queue
	Write need // of the queue; publishing requires the same permissions as over AMQP
}

// Rules has the rule of each operation.
var Rules = map[Operation]Rule{}

// ruled adds an operation that is not an Op.
func ruled(op Operation, r Rule) Operation {
	Rules[op] = r
	return op
}

var _ = Group("queue", "List, show, declare, peek into and purge queues of a running Curfew")

// The operations that have a method each.
var (
	ListQueues             = ruled("list_queues", Rule{Role: Management, Looks: true})
	Peek                   = ruled("peek", Rule{Role: Management, Read: Always})
	Get                    = ruled("get", Rule{Role: Management, Read: Always})
	ExportDefinitions      = ruled("export_definitions", Rule{Role: Administrator, Looks: true})
	ExportVHostDefinitions = ruled("export_vhost_definitions", Rule{Role: Policymaker, Looks: true})
	ImportDefinitions      = ruled("import_definitions", Rule{Role: Administrator})
	ListConnections        = ruled("list_connections", Rule{Role: Management, Looks: true}) // the actor's own; users with the role Monitor see all
	CloseConnections       = ruled("close_connections", Rule{Role: Management})             // the actor's own; administrators may close all
	TryMessage             = ruled("try_message", Rule{Role: Management, Looks: true})
	LookAround             = ruled("look_around", Rule{Role: Monitor, Looks: true}) // status, alerts, forecasts, the audit
	ChangeAlerts           = ruled("change_alerts", Rule{Role: Administrator})      // and what else is changed of a node (monitor/changes)
)
