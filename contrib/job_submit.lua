-- SPDX-License-Identifier: Apache-2.0
--
-- The twin of slurmplugin/job_submit_fairlease.c for sites that load job_submit/lua: it gates GPU jobs of managed partitions at
-- submission, so that they wait for a lease instead of starting at once. It reads the same settings (slurmplugin/fairlease-plugin.conf,
-- explained there), once, when slurmctld loads this script, and does the same, but for what Lua is shown:
--
--   * Lua cannot ask for a file's age, so it reads the heartbeat file, into which the sidecar writes the second of each touch.
--   * Lua sees a --signal only in the script's #SBATCH lines, not on the command line (matters with require_checkpoint).
--   * Lua sees the job that is changed, so protect_gate spares jobs that are not gated.
--
-- To use it beside a script of your own, load it with dofile() there and call fairlease_job_submit and fairlease_job_modify.

local conf_dir = (os.getenv("SLURM_CONF") or "/etc/slurm/slurm.conf"):match("^(.*)/") or "/etc/slurm"
local path = conf_dir .. "/fairlease-plugin.conf"

local settings = {
	partitions = "", default_partition = "", heartbeat_dir = "/run/fairlease",
	exclude_accounts = "", exclude_users = "", exclude_qos = "", operator_uids = "", checkpoint_mark = "checkpoint",
	gate_seconds = 600, heartbeat_max_age = 60,
	gate_shards = false, mark_requeue = false, require_checkpoint = false, protect_gate = false,
}

local function trim(text)
	return (text:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- The items of a comma-separated list, trimmed, without empty ones.
local function items(list)
	local found = {}
	for item in (list or ""):gmatch("[^,]+") do
		item = trim(item)
		if item ~= "" then
			found[#found + 1] = item
		end
	end
	return found
end

local function listed(list, item)
	for _, entry in ipairs(items(list)) do
		if item ~= nil and entry == tostring(item) then
			return true
		end
	end
	return false
end

-- The value of a setting as its kind wants it, or nil and what is wrong.
local function value_of(key, text)
	local kind = type(settings[key])
	if kind == "number" then
		local seconds = text:match("^%d+$") and tonumber(text)
		if not seconds or seconds < 1 or seconds > 366 * 86400 then
			return nil, "is not a number of seconds from 1 to a year"
		end
		return seconds
	elseif kind == "boolean" then
		if text ~= "yes" and text ~= "no" then
			return nil, "is neither yes nor no"
		end
		return text == "yes"
	elseif (key == "partitions" or key == "default_partition") and (text:find("/", 1, true) or text:sub(1, 1) == ".") then
		return nil, "is not made of partition names"
	end
	return text
end

-- A setting that is not known or makes no sense keeps this script from loading.
local function read_settings()
	local file, why = io.open(path, "r")
	if not file then
		error("fairlease: reading its settings: " .. why, 0)
	end
	local number, seen = 0, {}
	for line in file:lines() do
		number = number + 1
		line = trim(line)
		if line ~= "" and line:sub(1, 1) ~= "#" then
			local where = ("fairlease: %s:%d: "):format(path, number)
			local key, text = line:match("^([^=]*)=(.*)$")
			if not key then
				error(where .. "not of the form key=value", 0)
			end
			key = trim(key)
			if settings[key] == nil then
				error(where .. "unknown key '" .. key .. "'", 0)
			end
			if seen[key] then
				error(where .. key .. " is set twice", 0)
			end
			seen[key] = true
			local value, wrong = value_of(key, trim(text))
			if wrong then
				error(where .. key .. " " .. wrong, 0)
			end
			settings[key] = value
		end
	end
	file:close()
	if settings.partitions == "" then
		error("fairlease: " .. path .. ": partitions is not set: name the partitions that fairlease manages", 0)
	end
end

read_settings()
slurm.log_info("job_submit/lua: fairlease: gates GPU jobs of partitions %s for %d s while %s/PARTITION is fresh",
	settings.partitions, settings.gate_seconds, settings.heartbeat_dir)

-- True if a TRES request (gres/gpu:v100:2,…) asks for a GPU, or for a shard of one if shards count.
local function wants_gpu(tres)
	for request in (tres or ""):gmatch("[^,;]+") do
		request = trim(request):gsub("^gres[/:]", "")
		local name = request:match("^[^:=]*")
		if (name == "gpu" or (settings.gate_shards and name == "shard")) and not request:match("[:=]0+$") then
			return true
		end
	end
	return false
end

-- The first managed partition that the job names, or nil.
local function managed(wanted)
	if wanted == nil or wanted == "" then
		wanted = settings.default_partition
	end
	for _, name in ipairs(items(wanted)) do
		if listed(settings.partitions, name) then
			return name
		end
	end
	return nil
end

-- True while somebody grants leases in the partition.
local function granting(partition, now)
	local file = io.open(settings.heartbeat_dir .. "/" .. partition, "r")
	local beat = file and file:read("*n")
	if file then
		file:close()
	end
	return beat ~= nil and math.abs(now - beat) <= settings.heartbeat_max_age
end

local CRON_JOB = 2 ^ 22 -- in bitflags

-- The partition for which the job is one to gate, or nil.
local function concerns(job)
	if job.script == nil or (job.het_job_offset ~= nil and job.het_job_offset ~= slurm.NO_VAL) then
		return nil
	end
	if math.floor((job.bitflags or 0) / CRON_JOB) % 2 == 1 then
		return nil
	end
	if not (wants_gpu(job.tres_per_job) or wants_gpu(job.tres_per_node) or wants_gpu(job.tres_per_socket) or wants_gpu(job.tres_per_task)) then
		return nil
	end
	if listed(settings.exclude_accounts, job.account) or listed(settings.exclude_qos, job.qos) or
	   listed(settings.exclude_users, job.user_name) or listed(settings.exclude_users, job.user_id) then
		return nil
	end
	return managed(job.partition)
end

-- True if the job can save its work: it says so, or asks for a signal in its script.
local function can_save(job)
	local mark = settings.checkpoint_mark
	if mark ~= "" and (job.comment or ""):find(mark, 1, true) then
		return true
	end
	return ("\n" .. job.script):match("\n#SBATCH%s[^\n]*%-%-signal[=%s]") ~= nil
end

local function mark(begin, gate)
	return ("fl:begin=%.0f,gate=%.0f"):format(begin, gate)
end

function fairlease_job_submit(job, part_list, submit_uid)
	local now = os.time()
	local partition = concerns(job)
	if not partition or not granting(partition, now) then
		return slurm.SUCCESS
	end
	if settings.require_checkpoint and not can_save(job) then
		local instead = settings.checkpoint_mark ~= "" and ", or say that yours can with --comment=" .. settings.checkpoint_mark or ""
		slurm.log_user("fairlease: GPU jobs here must be able to save their work and go on later: submit with --signal=USR1@120 or the like" .. instead)
		return slurm.ESLURM_ACCESS_DENIED
	end

	local begin = job.begin_time or 0
	local gate = math.max(begin, now + settings.gate_seconds)
	job.begin_time = gate
	local keeps = job.requeue == 0
	if settings.mark_requeue and not keeps then
		job.requeue = 1
	end
	-- Another plugin's words stay; ours are found behind them.
	local words = job.admin_comment and job.admin_comment .. " " or ""
	job.admin_comment = words .. mark(begin, gate)
	local account = job.account and "account " .. job.account or "your default account"
	local later = keeps and "it then keeps its GPUs until it ends"
		or "at a lease's end it may be requeued, so save your work when signalled"
	slurm.log_user("fairlease: this job waits for a GPU lease of " .. account .. "; " .. later .. "; see: fairlease explain JOBID")
	return slurm.SUCCESS
end

function fairlease_job_modify(job, record, part_list, modify_uid)
	local now = os.time()
	local begin = job.begin_time or 0
	if not settings.protect_gate or begin == 0 or begin > now + settings.gate_seconds then
		return slurm.SUCCESS
	end
	if modify_uid == 0 or listed(settings.operator_uids, modify_uid) or not (record.admin_comment or ""):find("fl:begin=", 1, true) then
		return slurm.SUCCESS
	end
	for _, partition in ipairs(items(settings.partitions)) do
		if granting(partition, now) then
			slurm.log_user(("fairlease: a waiting GPU job's start time is set by its lease; it may only be moved further than %d s away; see: fairlease explain JOBID"):format(settings.gate_seconds))
			return slurm.ESLURM_ACCESS_DENIED
		end
	end
	return slurm.SUCCESS
end

slurm_job_submit = fairlease_job_submit
slurm_job_modify = fairlease_job_modify
return slurm.SUCCESS
