# SPDX-License-Identifier: Apache-2.0
"""A list of tasks: the small service with which everything can be tried."""

from __future__ import annotations

from newskills.base.records import Row
from newskills.graders.tau2.service import RefusedCall, ToolService

_STATUSES = ("pending", "completed")


class TaskList(ToolService):
    agent_tools = ("create_task", "get_users", "update_task_status", "transfer_to_human_agents")
    user_tools = ("check_notifications", "dismiss_notification")

    def create_task(self, user_id: str, title: str, description: str = "") -> Row:
        """Creates a task for a user, and returns it.

        user_id: the user's id
        title: what the task is called
        description: further words on it
        """
        user = self._known_user(user_id)
        tasks = self.data["tasks"]
        made = {
            "task_id": f"task_{len(tasks) + 1}",
            "title": title,
            "description": description or None,
            "status": "pending",
        }
        tasks[made["task_id"]] = made
        user["tasks"].append(made["task_id"])
        return made

    def get_users(self) -> list[Row]:
        """Lists all users with the ids of their tasks."""
        return list(self.data["users"].values())

    def update_task_status(self, task_id: str, status: str) -> Row:
        """Changes the status of a task, and returns it.

        task_id: the task's id
        status: pending or completed
        """
        task = self._known_task(task_id)
        if status not in _STATUSES:
            raise RefusedCall(f"there is no status {status}")
        task["status"] = status
        return task

    def transfer_to_human_agents(self, summary: str) -> str:
        """Hands the user over to a person, where the user wants that or nothing else can help.

        summary: what it is about
        """
        return "Transfer successful"

    def check_notifications(self) -> list[Row]:
        """Lists your notifications."""
        return list(self.user_data["notifications"].values())

    def dismiss_notification(self, notification_id: str) -> Row:
        """Marks one of your notifications as read, and returns it.

        notification_id: its id
        """
        notification = self._known_notification(notification_id)
        notification["status"] = "read"
        return notification

    def add_notification(self, notification_id: str, message: str, task_id: str = "") -> Row:
        made = {
            "notification_id": notification_id,
            "message": message,
            "status": "unread",
            "task_id": task_id or None,
        }
        notifications: Row = self.user_data.setdefault("notifications", {})
        notifications[notification_id] = made
        return made

    def assert_task_status(self, task_id: str, expected_status: str) -> bool:
        return bool(self._known_task(task_id)["status"] == expected_status)

    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        return len(self._known_user(user_id)["tasks"]) == expected_number

    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        return bool(self._known_notification(notification_id)["status"] == expected_status)

    def _known_user(self, user_id: str) -> Row:
        if user_id not in self.data["users"]:
            raise RefusedCall(f"there is no user {user_id}")
        user: Row = self.data["users"][user_id]
        return user

    def _known_task(self, task_id: str) -> Row:
        if task_id not in self.data["tasks"]:
            raise RefusedCall(f"there is no task {task_id}")
        task: Row = self.data["tasks"][task_id]
        return task

    def _known_notification(self, notification_id: str) -> Row:
        if notification_id not in self.user_data.get("notifications", {}):
            raise RefusedCall(f"there is no notification {notification_id}")
        notification: Row = self.user_data["notifications"][notification_id]
        return notification
