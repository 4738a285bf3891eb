# SPDX-License-Identifier: Apache-2.0
"""A shop: customers, products with variants, orders that can be cancelled, changed, returned and exchanged.

The rules are those of the benchmark's own service, its words are not. One difference: when several items of a pending
order are changed, each gets the price and options of its own new variant (there, all get those of the last one).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from newskills.base.records import Row
from newskills.graders.tau2.service import RefusedCall
from newskills.graders.tau2.tables import TableService

_REASONS = ("no longer needed", "ordered by mistake")


class Shop(TableService):
    agent_tools = (
        *("calculate", "cancel_pending_order", "exchange_delivered_order_items", "find_user_id_by_email"),
        *("find_user_id_by_name_zip", "get_item_details", "get_order_details", "get_product_details"),
        *(
            "get_user_details",
            "list_all_product_types",
            "modify_pending_order_address",
            "modify_pending_order_items",
        ),
        *("modify_pending_order_payment", "modify_user_address", "return_delivered_order_items"),
        "transfer_to_human_agents",
    )

    def find_user_id_by_email(self, email: str) -> str:
        """Finds the id of a customer by the e-mail address.

        email: such as 'someone@example.com'
        """
        return self._find_user(lambda user: _fold_text(user["email"]) == _fold_text(email))

    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        """Finds the id of a customer by name and postal code, for those who do not remember their e-mail address.

        first_name: such as 'John'
        last_name: such as 'Doe'
        zip: postal code, such as '12345'
        """
        name = (_fold_text(first_name), _fold_text(last_name))
        return self._find_user(
            lambda user: (
                (_fold_text(user["name"]["first_name"]), _fold_text(user["name"]["last_name"])) == name
                and user["address"]["zip"] == zip
            )
        )

    def get_user_details(self, user_id: str) -> Row:
        """Shows a customer with addresses, payment methods and orders.

        user_id: such as 'sara_doe_496'
        """
        return self._known_row("users", user_id)

    def get_order_details(self, order_id: str) -> Row:
        """Shows an order: its items, status, address, and payments.

        order_id: such as '#W0000000', with the '#'
        """
        return self._known_row("orders", order_id)

    def get_product_details(self, product_id: str) -> Row:
        """Shows a product with all its variants: options, prices, and whether they are to be had.

        product_id: such as '6086499569'; it is not the id of an item
        """
        return self._known_row("products", product_id)

    def get_item_details(self, item_id: str) -> Row:
        """Shows one variant of a product.

        item_id: such as '6086499569'; it is not the id of a product
        """
        for product in self.data["products"].values():
            if item_id in product["variants"]:
                variant: Row = product["variants"][item_id]
                return variant
        raise RefusedCall("there is no such item")

    def list_all_product_types(self) -> Row:
        """Lists the names of all products with their ids."""
        products = self.data["products"].values()
        return dict(sorted((product["name"], product["product_id"]) for product in products))

    def cancel_pending_order(self, order_id: str, reason: str) -> Row:
        """Cancels an order that is still pending, after the user has said yes to it. Payments by gift card are back at
        once, others in five to seven working days. Returns the order.

        order_id: such as '#W0000000', with the '#'
        reason: 'no longer needed' or 'ordered by mistake'
        """
        order = self._known_row("orders", order_id)
        if order["status"] != "pending":
            raise RefusedCall("the order is not pending: it cannot be cancelled")
        if reason not in _REASONS:
            raise RefusedCall(f"the reason is none of {' and '.join(_REASONS)}")
        paid = list(order["payment_history"])
        for payment in paid:
            self._charge_gift_card(order, payment["payment_method_id"], -payment["amount"])
        order["status"], order["cancel_reason"] = "cancelled", reason
        order["payment_history"] += [{**payment, "transaction_type": "refund"} for payment in paid]
        return order

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Row:
        """Asks for an exchange of items of a delivered order for other variants of the same products, after the user
        has said yes to it. It can be done once for an order. Returns the order.

        order_id: such as '#W0000000', with the '#'
        item_ids: items to be given back, such as '1008292230'; one that was bought twice may stand there twice
        new_item_ids: the new item for each of them, in the same order
        payment_method_id: for the difference in price, such as 'gift_card_0000000' or 'credit_card_0000000'
        """
        order = self._delivered_order(order_id, item_ids)
        pairs = list(self._exchanged_variants(order, item_ids, new_item_ids))
        difference = round(sum(new["price"] - old["price"] for old, new in pairs), 2)
        self._check_funds(order, payment_method_id, difference)
        order |= {
            "status": "exchange requested",
            "exchange_items": sorted(item_ids),
            "exchange_new_items": sorted(new_item_ids),
            "exchange_payment_method_id": payment_method_id,
            "exchange_price_difference": difference,
        }
        return order

    def return_delivered_order_items(self, order_id: str, item_ids: list[str], payment_method_id: str) -> Row:
        """Asks for the return of items of a delivered order, after the user has said yes to it. What to do follows by
        e-mail. Returns the order.

        order_id: such as '#W0000000', with the '#'
        item_ids: items to be given back, such as '1008292230'; one that was bought twice may stand there twice
        payment_method_id: for the refund: the one that was paid with, or a gift card
        """
        order = self._delivered_order(order_id, item_ids)
        method = self._payment_method(order, payment_method_id)
        if (
            method["source"] != "gift_card"
            and payment_method_id != order["payment_history"][0]["payment_method_id"]
        ):
            raise RefusedCall("the refund goes to the payment method of the order, or to a gift card")
        order |= {
            "status": "return requested",
            "return_items": sorted(item_ids),
            "return_payment_method_id": payment_method_id,
        }
        return order

    def modify_pending_order_address(
        self, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Row:
        """Changes where a pending order goes, after the user has said yes to it. Returns the order.

        order_id: such as '#W0000000', with the '#'
        address1: first line, such as '123 Main St'
        address2: second line, such as 'Apt 1', or ''
        city: such as 'San Francisco'
        state: such as 'CA'
        country: such as 'USA'
        zip: such as '12345'
        """
        order = self._pending_order(order_id)
        order["address"] = _address_row(address1, address2, city, state, country, zip)
        return order

    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Row:
        """Changes items of a pending order to other variants of the same products, after the user has said yes to it.
        It can be done once for an order. Returns the order.

        order_id: such as '#W0000000', with the '#'
        item_ids: items to be changed, such as '1008292230'; one that was bought twice may stand there twice
        new_item_ids: the new item for each of them, in the same order
        payment_method_id: for the difference in price, such as 'gift_card_0000000' or 'credit_card_0000000'
        """
        order = self._known_row("orders", order_id)
        if order["status"] != "pending":
            raise RefusedCall("the order is not pending: it cannot be changed")
        _check_items(order, item_ids)
        if any(old == new for old, new in zip(item_ids, new_item_ids, strict=False)):
            raise RefusedCall("a new item is the same as the old one")
        pairs = list(self._exchanged_variants(order, item_ids, new_item_ids))
        difference = round(sum(new["price"] - old["price"] for old, new in pairs), 2)
        self._check_funds(order, payment_method_id, difference)
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(_payment_row(kind, abs(difference), payment_method_id))
        self._charge_gift_card(order, payment_method_id, difference)
        for old, new in pairs:
            old |= {"item_id": new["item_id"], "price": new["price"], "options": dict(new["options"])}
        order["status"] = "pending (item modified)"
        return order

    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Row:
        """Changes how a pending order is paid, after the user has said yes to it. Returns the order.

        order_id: such as '#W0000000', with the '#'
        payment_method_id: the new one, such as 'gift_card_0000000' or 'credit_card_0000000'
        """
        order = self._pending_order(order_id)
        method = self._payment_method(order, payment_method_id)
        history = order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise RefusedCall("the order has not exactly one payment")
        before, amount = history[0]["payment_method_id"], history[0]["amount"]
        if before == payment_method_id:
            raise RefusedCall("it is paid with this method already")
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise RefusedCall("the gift card does not cover the order")
        history += [_payment_row("payment", amount, payment_method_id), _payment_row("refund", amount, before)]
        self._charge_gift_card(order, payment_method_id, amount)
        self._charge_gift_card(order, before, -amount)
        return order

    def modify_user_address(
        self, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Row:
        """Changes the address of a customer, after the user has said yes to it. Returns the customer.

        user_id: such as 'sara_doe_496'
        address1: first line, such as '123 Main St'
        address2: second line, such as 'Apt 1', or ''
        city: such as 'San Francisco'
        state: such as 'CA'
        country: such as 'USA'
        zip: such as '12345'
        """
        user = self._known_row("users", user_id)
        user["address"] = _address_row(address1, address2, city, state, country, zip)
        return user

    def _known_row(self, table: str, key: str) -> Row:
        row = self.row(table, key)
        if row is None:
            raise RefusedCall(f"{table.removesuffix('s')} not found")
        return row

    def _find_user(self, fits: Callable[[Row], bool]) -> str:
        matching_id = next((user_id for user_id, user in self.data["users"].items() if fits(user)), None)
        if matching_id is None:
            raise RefusedCall("user not found")
        return str(matching_id)

    def _pending_order(self, order_id: str) -> Row:
        order = self._known_row("orders", order_id)
        if "pending" not in order["status"]:
            raise RefusedCall("the order is not pending: it cannot be changed")
        return order

    def _delivered_order(self, order_id: str, item_ids: list[str]) -> Row:
        order = self._known_row("orders", order_id)
        if order["status"] != "delivered":
            raise RefusedCall("the order is not delivered")
        _check_items(order, item_ids)
        return order

    def _payment_method(self, order: Row, payment_method_id: str) -> Row:
        methods = self._known_row("users", order["user_id"])["payment_methods"]
        if payment_method_id not in methods:
            raise RefusedCall("payment method not found")
        method: Row = methods[payment_method_id]
        return method

    def _exchanged_variants(
        self, order: Row, item_ids: list[str], new_item_ids: list[str]
    ) -> Iterator[tuple[Row, Row]]:
        """Yield (item of the order, its new variant); an item that was bought twice is taken twice."""
        if len(item_ids) != len(new_item_ids):
            raise RefusedCall("there are not as many new items as old ones")
        left = list(order["items"])
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item = next(item for item in left if item["item_id"] == item_id)
            left.remove(item)
            variants = self._known_row("products", item["product_id"])["variants"]
            if new_item_id not in variants or not variants[new_item_id]["available"]:
                raise RefusedCall(f"the new item {new_item_id} is none of this product, or not to be had")
            yield item, variants[new_item_id]

    def _check_funds(self, order: Row, payment_method_id: str, amount: float) -> None:
        method = self._payment_method(order, payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise RefusedCall("the gift card does not cover the difference in price")

    def _charge_gift_card(self, order: Row, payment_method_id: str, amount: float) -> None:
        """Take `amount` from a gift card, at once; below 0 it is a refund."""
        method = self._payment_method(order, payment_method_id)
        if method["source"] == "gift_card":
            method["balance"] = round(method["balance"] - amount, 2)


def _check_items(order: Row, item_ids: list[str]) -> None:
    bought = [item["item_id"] for item in order["items"]]
    for item_id in item_ids:
        if item_ids.count(item_id) > bought.count(item_id):
            raise RefusedCall(f"the order has not so many of the item {item_id}")


def _payment_row(kind: str, amount: float, payment_method_id: str) -> Row:
    return {"transaction_type": kind, "amount": amount, "payment_method_id": payment_method_id}


def _address_row(*parts: str) -> Row:
    return dict(zip(("address1", "address2", "city", "state", "country", "zip"), parts, strict=True))


def _fold_text(text: str) -> str:
    """Return `text` without case and accents."""
    plain = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold().strip()
