# SPDX-License-Identifier: Apache-2.0
"""A telephone company: customers with plans, lines, devices and bills; and the phone of the user who calls.

The rules are those of the benchmark's own service, its words are not. What the company changes reaches the phone, and
what the user pays reaches the company, after every call (`settle`).
"""

from __future__ import annotations

from typing import Any

from newskills.base.records import Row
from newskills.graders.tau2.phone_faults import FaultyPhone
from newskills.graders.tau2.service import RefusedCall

_TODAY, _LAST_OF_MONTH = "2025-02-25", "2025-02-28"
_LAST_MONTH = {
    "period_start": "2025-01-01",
    "period_end": "2025-01-31",
    "issue_date": "2025-01-01",
    "due_date": "2025-01-15",
}
_NEXT_MONTH = {
    "period_start": "2025-03-01",
    "period_end": "2025-03-31",
    "issue_date": "2025-03-01",
    "due_date": "2025-03-15",
}
_TABLES = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}
_DEFAULTS: dict[str, Row] = {
    "plans": {},
    "customers": {
        "account_status": "Pending Verification",
        "created_at": "2025-01-01",
        "last_extension_date": None,
        "goodwill_credit_used_this_year": 0.0,
    },
    "lines": {
        "status": "Pending Activation",
        "device_id": None,
        "data_used_gb": 0.0,
        "data_refueling_gb": 0.0,
        "roaming_enabled": False,
        "contract_end_date": None,
        "last_plan_change_date": None,
        "last_sim_replacement_date": None,
        "suspension_start_date": None,
    },
    "bills": {"status": "Draft"},
    "devices": {
        "imei": None,
        "activated": False,
        "activation_date": None,
        "last_esim_transfer_date": None,
    },
}
_LISTS = {"customers": ("payment_methods", "line_ids", "bill_ids"), "bills": ("line_items",)}
_TIMES = ("activation_date", "last_esim_transfer_date", "created_at")


class Telecom(FaultyPhone):
    agent_tools = (
        *("disable_roaming", "enable_roaming", "get_bills_for_customer", "get_customer_by_id"),
        *("get_customer_by_name", "get_customer_by_phone", "get_data_usage", "get_details_by_id", "refuel_data"),
        *("resume_line", "send_payment_request", "suspend_line", "transfer_to_human_agents"),
    )

    def __init__(self, data: Row, user_data: Row | None = None) -> None:
        super().__init__(
            {table: [_complete_row(table, row) for row in data.get(table, ())] for table in _DEFAULTS}, user_data
        )

    def get_customer_by_phone(self, phone_number: str) -> Row:
        """Finds the customer whom a phone number belongs to: the one for contact, or that of a line.

        phone_number: such as '555-123-2001'
        """
        for customer in self.data["customers"]:
            numbers = (self._known_row("lines", line_id)["phone_number"] for line_id in customer["line_ids"])
            if phone_number == customer["phone_number"] or phone_number in numbers:
                return dict(customer)
        raise RefusedCall(f"no customer has the phone number {phone_number}")

    def get_customer_by_id(self, customer_id: str) -> Row:
        """Shows a customer with lines and bills.

        customer_id: such as 'C1001'
        """
        return self._known_row("customers", customer_id)

    def get_customer_by_name(self, full_name: str, dob: str) -> list[Row]:
        """Finds customers by name and date of birth.

        full_name: such as 'John Doe'
        dob: date of birth, YYYY-MM-DD
        """
        wanted = (full_name.lower(), dob)
        return [
            row for row in self.data["customers"] if (row["full_name"].lower(), row["date_of_birth"]) == wanted
        ]

    def get_details_by_id(self, id: str) -> Row:
        """Shows a customer, line, device, bill or plan.

        id: such as 'L1001'; its first letter says what it is
        """
        if id[:1] not in _TABLES:
            raise RefusedCall(f"an id like {id} is unknown")
        return self._known_row(_TABLES[id[:1]], id)

    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> Row:
        """Suspends an active line, for six months at most, at $5 a month.

        customer_id: whose line it is
        line_id: such as 'L1001'
        reason: why
        """
        line = self._known_line(customer_id, line_id)
        if line["status"] != "Active":
            raise RefusedCall("the line is not active")
        line.update(status="Suspended", suspension_start_date=_TODAY)
        return {"message": "The line is suspended; that costs $5 a month.", "line": line}

    def resume_line(self, customer_id: str, line_id: str) -> Row:
        """Makes a line active that is suspended or yet to be activated.

        customer_id: whose line it is
        line_id: such as 'L1001'
        """
        line = self._known_line(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise RefusedCall("the line is not suspended")
        line.update(status="Active", suspension_start_date=None)
        return {"message": "The line is active.", "line": line}

    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> list[Row]:
        """Lists bills of a customer, the newest first.

        customer_id: such as 'C1001'
        limit: largest number of bills
        """
        if not isinstance(limit, int | None):
            raise RefusedCall(f"{limit!r:.200} is no whole number")
        bills = [
            self._known_row("bills", bill_id) for bill_id in self._known_row("customers", customer_id)["bill_ids"]
        ]
        return sorted(bills, key=lambda bill: str(bill["issue_date"]), reverse=True)[:limit]

    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        """Asks a customer to pay a bill; only one may wait for payment. Whether it is paid already is not checked
        here.

        customer_id: such as 'C1001'
        bill_id: such as 'B1001'
        """
        customer = self._known_row("customers", customer_id)
        if self._awaited_bills(customer):
            raise RefusedCall("another bill of the customer waits for payment")
        if bill_id not in customer["bill_ids"]:
            raise RefusedCall(f"the customer {customer_id} has no bill {bill_id}")
        self._known_row("bills", bill_id)["status"] = "Awaiting Payment"
        return f"The customer is asked to pay the bill {bill_id}."

    def get_data_usage(self, customer_id: str, line_id: str) -> Row:
        """Shows how much data a line has used this month, what its plan has, and what was added.

        customer_id: whose line it is
        line_id: such as 'L1001'
        """
        line = self._known_line(customer_id, line_id)
        limit = self._known_row("plans", line["plan_id"])["data_limit_gb"]
        used, added = str(line["data_used_gb"]), str(line["data_refueling_gb"])
        amounts = {"data_used_gb": used, "data_limit_gb": str(limit), "data_refueling_gb": added}
        return {"line_id": line_id, **amounts, "cycle_end_date": _LAST_OF_MONTH}

    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        """Permits a line to be used in the networks of other companies, such as abroad.

        customer_id: whose line it is
        line_id: such as 'L1001'
        """
        return self._set_roaming(customer_id, line_id, True)

    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        """Permits a line no longer to be used in the networks of other companies.

        customer_id: whose line it is
        line_id: such as 'L1001'
        """
        return self._set_roaming(customer_id, line_id, False)

    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> Row:
        """Adds data to a line for this month, at the price of its plan, on the customer's next bill.

        customer_id: whose line it is
        line_id: such as 'L1001'
        gb_amount: gigabytes to add
        """
        line = self._known_line(customer_id, line_id)
        if not isinstance(gb_amount, int | float) or gb_amount <= 0:
            raise RefusedCall("the amount is no number above 0")
        price = self._known_row("plans", line["plan_id"])["data_refueling_price_per_gb"]
        line["data_refueling_gb"] += gb_amount
        self._bill_next_month(customer_id, gb_amount * price, f"{gb_amount} GB of data at ${price} each")
        return {
            "message": f"The line {line_id} has {gb_amount} GB more, for ${gb_amount * price:.2f}.",
            "new_data_refueling_gb": str(line["data_refueling_gb"]),
            "charge": str(gb_amount * price),
        }

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hands the user over to a person, where the user wants that or nothing else can help.

        summary: what it is about
        """
        return "Transfer successful"

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> None:
        self._known_line(customer_id, line_id)["data_used_gb"] = data_used_gb

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> None:
        line, customer = self._known_row("lines", line_id), self._known_row("customers", customer_id)
        if line["status"] != "Active":
            raise RefusedCall("the line is not active")
        if any(self._known_row("bills", bill_id)["status"] == "Overdue" for bill_id in customer["bill_ids"]):
            raise RefusedCall("the customer has an overdue bill")
        price = self._known_row("plans", line["plan_id"])["price_per_month"]
        self._add_bill(customer, new_bill_id, "Overdue", _LAST_MONTH)
        self._add_charge(new_bill_id, price, f"line {line_id}")
        line.update(status="Suspended", suspension_start_date=_TODAY)
        if contract_ended:
            line["contract_end_date"] = _LAST_MONTH["period_end"]

    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        return abs(float(self._known_line(customer_id, line_id)["data_refueling_gb"]) - expected_amount) < 1e-6

    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        return bool(self._known_line(customer_id, line_id)["status"] == expected_status)

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        if overdue_bill_id not in self._known_row("customers", customer_id)["bill_ids"]:
            return False
        return bool(self._known_row("bills", overdue_bill_id)["status"] == "Overdue")

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Return whether the bill is paid, or does not exist."""
        bills = [bill for bill in self.data["bills"] if bill["bill_id"] == overdue_bill_id]
        return not bills or bool(bills[0]["status"] == "Paid")

    def settle(self) -> None:
        """Copy to the phone what the line permits, and what is to be paid, and to the bill what was paid.

        Raises RefusedCall.
        """
        around = self.surroundings
        number = around["phone_number"]
        if number is None:
            return
        line = next((line for line in self.data["lines"] if line["phone_number"] == number), None)
        if line is None:
            raise RefusedCall(f"no line has the phone number {number}")
        limit = self._known_row("plans", line["plan_id"])["data_limit_gb"] + line["data_refueling_gb"]
        around.update(
            line_active=line["status"] == "Active",
            roaming_allowed=bool(line["roaming_enabled"]),
            mobile_data_usage_exceeded=line["data_used_gb"] >= limit,
        )
        if around["payment_request"] is not None and around["payment_request"]["paid"]:
            self._known_row("bills", around["payment_request"]["bill_id"])["status"] = "Paid"
            around["payment_request"] = None
        if around["payment_request"] is None:
            for bill in self._awaited_bills(self.get_customer_by_phone(number))[:1]:
                request = {"bill_id": bill["bill_id"], "amount_due": bill["total_due"], "paid": False}
                around["payment_request"] = request

    def _known_row(self, table: str, key: str) -> Row:
        kind = table.removesuffix("s")
        rows: list[Row] = self.data[table]
        for row in rows:
            if row[f"{kind}_id"] == key:
                return row
        raise RefusedCall(f"{kind} {key} not found")

    def _known_line(self, customer_id: str, line_id: str) -> Row:
        if line_id not in self._known_row("customers", customer_id)["line_ids"]:
            raise RefusedCall(f"the customer {customer_id} has no line {line_id}")
        return self._known_row("lines", line_id)

    def _set_roaming(self, customer_id: str, line_id: str, allowed: bool) -> str:
        line, state = self._known_line(customer_id, line_id), "enabled" if allowed else "disabled"
        if bool(line["roaming_enabled"]) == allowed:
            return f"Roaming was {state} already."
        line["roaming_enabled"] = allowed
        return f"Roaming is {state}."

    def _awaited_bills(self, customer: Row) -> list[Row]:
        bills = [self._known_row("bills", bill_id) for bill_id in customer["bill_ids"]]
        return [bill for bill in bills if bill["status"] == "Awaiting Payment"]

    def _bill_next_month(self, customer_id: str, amount: float, description: str) -> None:
        customer = self._known_row("customers", customer_id)
        bills = [self._known_row("bills", bill_id) for bill_id in customer["bill_ids"]]
        draft = next((bill["bill_id"] for bill in bills if bill["status"] == "Draft"), None)
        if draft is None:
            draft = f"B{len(self.data['bills']):08x}"
            self._add_bill(customer, draft, "Draft", _NEXT_MONTH)
        self._add_charge(draft, amount, description)

    def _add_bill(self, customer: Row, bill_id: str, status: str, days: Row) -> None:
        bill: Row = {"bill_id": bill_id, "customer_id": customer["customer_id"], **days, "total_due": 0.0}
        self.data["bills"].append({**bill, "line_items": [], "status": status})
        customer["bill_ids"].append(bill_id)

    def _add_charge(self, bill_id: str, amount: float, description: str) -> None:
        bill = self._known_row("bills", bill_id)
        kind = "Credit" if amount < 0 else "Charge"
        item = {"description": description, "amount": float(amount), "date": _TODAY, "item_type": kind}
        bill["line_items"].append(item)
        bill["total_due"] += amount


def _complete_row(table: str, row: Row) -> Row:
    """Return a row with all fields, and with times as calls are told them."""
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS.get(table, ())}
    times = {name: row[name].replace("T", " ") for name in _TIMES if row.get(name)}
    return _DEFAULTS[table] | lists | row | times
