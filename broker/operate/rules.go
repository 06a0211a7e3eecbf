package operate

import "strings"

// Operation names an operation in records.
type Operation string

var operationWords = strings.NewReplacer("_", " ", "vhost", "virtual host", "rabbitmq", "RabbitMQ")

// Words says the operation to people: set_policy is "set policy".
func (op Operation) Words() string { return operationWords.Replace(string(op)) }

// The operations.
const (
	ListQueues             Operation = "list_queues"
	Peek                   Operation = "peek"
	Get                    Operation = "get"
	SearchDeadLetters      Operation = "search_dead_letters" // and groups
	ExportDeadLetters      Operation = "export_dead_letters"
	ImportDeadLetters      Operation = "import_dead_letters"
	ResendDeadLetter       Operation = "resend_dead_letter"
	ExportDefinitions      Operation = "export_definitions"
	ExportVHostDefinitions Operation = "export_vhost_definitions"
	ImportDefinitions      Operation = "import_definitions"
	ListConnections        Operation = "list_connections"
	CloseConnections       Operation = "close_connections"
	DeleteQueue            Operation = "delete_queue"
	Publish                Operation = "publish"
	TryMessage             Operation = "try_message"
	LookAround             Operation = "look_around"   // status, alerts, forecasts, the audit
	ChangeAlerts           Operation = "change_alerts" // and what else is changed of a node (monitor/changes)
	// ManyAttempts is the record of further attempts within a minute that were refused or failed. It is not an operation that users do.
	ManyAttempts Operation = "many_attempts"
)

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
var Rules = map[Operation]Rule{
	ListQueues:             {Role: Management, Looks: true},
	Peek:                   {Role: Management, Read: Always},
	Get:                    {Role: Management, Read: Always},
	SearchDeadLetters:      {Role: Management, Read: Always},
	ExportDeadLetters:      {Role: Management, Read: Always},
	ImportDeadLetters:      {Role: Management, Read: Always},
	ResendDeadLetter:       {Role: Management, Read: Always},
	ExportDefinitions:      {Role: Administrator, Looks: true},
	ExportVHostDefinitions: {Role: Policymaker, Looks: true},
	ImportDefinitions:      {Role: Administrator},
	ListConnections:        {Role: Management, Looks: true}, // the actor's own; users with the role Monitor see all
	CloseConnections:       {Role: Management},              // the actor's own; administrators may close all
	DeleteQueue:            {Role: Management},
	Publish:                {Role: Management},
	TryMessage:             {Role: Management, Looks: true},
	LookAround:             {Role: Monitor, Looks: true},
	ChangeAlerts:           {Role: Administrator},
}
