-- SPDX-License-Identifier: Apache-2.0
--
-- fairlease 0.1.0: the Lua version of slurmplugin/job_submit_fairlease.c, for sites that load job_submit/lua: it gates GPU jobs of managed partitions at
-- submission, so that they wait for a lease instead of starting at once. It reads the same settings (slurmplugin/fairlease-plugin.conf
-- explains them), once, when slurmctld loads this script. It copies the hints in FAIRLEASE_HINTS too. It differs in three points:
--
--   * Lua cannot read a file's age. So it reads the content of the heartbeat file, the second of its last update.
--   * Lua sees --signal and --deadline only in the script's #SBATCH lines, not on the command line. So a gate by begin time ends at
--     most heartbeat_max_age ahead, since Slurm refuses jobs that cannot meet their deadline. Set gate_license to avoid that.
--   * Lua sees the changed job, so protect_gate exempts ungated jobs.
--
-- To combine it with your own script, load it with dofile() and call fairlease_job_submit and fairlease_job_modify.

local conf_dir = (os.getenv("SLURM_CONF") or "/etc/slurm/slurm.conf"):match("^(.*)/") or "/etc/slurm"
local path = conf_dir .. "/fairlease-plugin.conf"

local settings = {
	partitions = "", default_partition = "", heartbeat_dir = "/run/fairlease",
	exclude_accounts = "", exclude_users = "", exclude_qos = "", operator_uids = "", checkpoint_mark = "checkpoint",
	gate_license = "", opt_out = "",
	["opt_out.no_requeue"] = "", ["opt_out.contiguous"] = "", ["opt_out.session"] = "", ["opt_out.het"] = "", ["opt_out.other"] = "", ["opt_out.no_gpus"] = "",
	["opt_out.expedite"] = "",
	gate_seconds = 600, heartbeat_max_age = 60, gate_site_factor = -1000000000,
	gate_shards = true, mark_requeue = false, require_checkpoint = false, protect_gate = true,
}

-- Shows the user a line; without %s, log_user would interpret a % in it.
local function tell(line)
	slurm.log_user("%s", line)
end

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

-- The value of a setting, converted to its kind, or nil and an error message.
local function value_of(key, text)
	local kind = type(settings[key])
	if kind == "number" then
		local number = #text <= 11 and text:match("^%-?%d+$") and tonumber(text)
		if key == "gate_site_factor" then
			if not number or number < -1073741823 or number > 0 then
				return nil, "is not a whole number from -1073741823 to 0"
			end
		elseif not number or number < 1 or number > 366 * 86400 then
			return nil, "is not a number of seconds from 1 to a year"
		end
		return number
	elseif kind == "boolean" then
		if text ~= "yes" and text ~= "no" then
			return nil, "is neither yes nor no"
		end
		return text == "yes"
	elseif (key == "partitions" or key == "default_partition") and (text:find("/", 1, true) or text:sub(1, 1) == ".") then
		return nil, "is not made of partition names"
	elseif key == "gate_license" and text:find("[^%w_.-]") then
		return nil, "is not the name of a licence: use letters, digits, _, - and ."
	elseif key == "opt_out.expedite" and text ~= "charge" and text ~= "refuse" and text ~= "override" then
		return nil, "is none of charge, refuse and override"
	elseif key:match("^opt_out") and key ~= "opt_out.expedite" and text ~= "leave" and text ~= "charge" and text ~= "refuse" then
		if key ~= "opt_out.no_requeue" and key ~= "opt_out.contiguous" then
			return nil, "is none of charge, leave and refuse"
		elseif text ~= "override" then
			return nil, "is none of charge, leave, refuse and override"
		end
	end
	return text
end

-- An unknown or invalid setting prevents loading.
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
	for key, word in pairs(settings) do -- opt_out is the word of the ways that have none of their own
		if word == "" and key:match("^opt_out%.") then
			local leased = key == "opt_out.no_requeue" or key == "opt_out.no_gpus" or key == "opt_out.expedite"
			settings[key] = settings.opt_out ~= "" and not leased and settings.opt_out or "charge"
		end
	end
	if settings.partitions == "" then
		error("fairlease: " .. path .. ": partitions is not set: name the partitions that fairlease manages", 0)
	end
end

-- False if slurm.conf certainly lacks the licence: it has no Licenses= with it and includes no other file.
local function configured(name)
	local file = io.open(conf_dir .. "/slurm.conf", "r")
	if not file then
		return true
	end
	local text = "\n" .. file:read("*a"):gsub("#[^\n]*", ""):gsub("\\%s*\n", " ")
	file:close()
	if text:lower():find("\n%s*include%s") then
		return true
	end
	for line in text:gmatch("[^\n]+") do
		if line:lower():find("licenses%s*=") then
			for word in line:gmatch("[%w_.-]+") do
				if word == name then
					return true
				end
			end
		end
	end
	return false
end

-- The user as whom slurmctld runs.
local function own_user()
	for line in io.lines("/proc/self/status") do
		local user = line:match("^Uid:%s+%d+%s+(%d+)")
		if user then
			return tonumber(user)
		end
	end
end

read_settings()
local slurm_user = own_user()
if settings.gate_license ~= "" and not configured(settings.gate_license) then
	slurm.log_error("job_submit/lua: fairlease: %s/slurm.conf has no Licenses=%s:1000000: add it and run scontrol reconfigure; until then gates are begin times",
		conf_dir, settings.gate_license)
	settings.gate_license = "" -- Slurm would refuse jobs with a licence that it does not have
end
slurm.log_info("job_submit/lua: fairlease: gates GPU jobs of partitions %s by %s%s while %s/PARTITION is fresh", settings.partitions,
	settings.gate_license ~= "" and "licence " or "begin times", settings.gate_license, settings.heartbeat_dir)

-- Each request of a TRES list (gres/gpu:v100:2,…) without its type (gpu:v100:2).
local function requests(tres)
	local each = (tres or ""):gmatch("[^,;]+")
	return function()
		local request = each()
		return request and (trim(request):gsub("^gres[/:]", ""))
	end
end

-- True if a TRES request (gres/gpu:v100:2,…) requests a GPU, or a shard of one if shards count.
local function wants_gpu(tres)
	for request in requests(tres) do
		local name = request:match("^[^:=]*")
		if (name == "gpu" or (settings.gate_shards and name == "shard")) and not request:match("[:=]0+$") then
			return true
		end
	end
	return false
end

-- Whether a daemon grants leases in the partition, its user id, and its gate.ttl in seconds; an older daemon tells less.
local function granting(partition, now)
	local file = io.open(settings.heartbeat_dir .. "/" .. partition, "r")
	local beat, daemon, ttl
	if file then
		beat, daemon, ttl = file:read("*n", "*n", "*n")
		file:close()
	end
	return beat ~= nil and math.abs(now - beat) <= settings.heartbeat_max_age, daemon, ttl
end

local function wants_gpus(job)
	return wants_gpu(job.tres_per_job) or wants_gpu(job.tres_per_node) or wants_gpu(job.tres_per_socket) or wants_gpu(job.tres_per_task)
end

local function wants_shards(job)
	for _, field in ipairs({"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) do
		for request in requests(job[field]) do
			if request:match("^[^:=]*") == "shard" then
				return true
			end
		end
	end
	return false
end

-- A managed partition of the job in which a daemon grants leases now, and the daemon's gate.ttl; or nil: there is none, or the job is excluded.
local function governed(job, now)
	if listed(settings.exclude_accounts, job.account) or listed(settings.exclude_qos, job.qos) or
	   listed(settings.exclude_users, job.user_name) or listed(settings.exclude_users, job.user_id) then
		return nil
	end
	local wanted = job.partition
	if wanted == nil or wanted == "" then
		wanted = settings.default_partition
	end
	for _, name in ipairs(items(settings.partitions)) do
		if listed(wanted, name) then
			local grants, _, ttl = granting(name, now)
			if grants then
				return name, ttl
			end
		end
	end
	return nil
end

-- Each request for GPUs of a TRES list: their count, and their model or "".
local function gpu_requests(tres)
	local each = requests(tres)
	return function()
		for request in each do
			local count = request:match("^gpu$") and 1 or request:match("^gpu[:=].*$") and (tonumber(request:match("[:=](%d+)$")) or 1)
			if count and count > 0 then
				local model, rest = request:match("^gpu[:=]([^:=]*)(.*)$")
				return count, (model and not (rest == "" and model:match("^%d"))) and model or ""
			end
		end
	end
end

-- True if the job's requests name GPUs of more than one model.
local function several_models(job)
	local first
	for _, field in ipairs({"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) do
		for _, model in gpu_requests(job[field]) do
			if model ~= "" and first and model ~= first then
				return true
			end
			first = model ~= "" and model or first
		end
	end
	return false
end

local CRON_JOB, NTASKS_SET, EXPEDITED = 2 ^ 22, 2 ^ 14, 2 ^ 45 -- in bitflags
local SHARED_OK, NO_VAL16 = 1, 65534 -- of shared

local function has_flag(job, flag)
	return math.floor((job.bitflags or 0) / flag) % 2 == 1
end

-- The number of GPUs that a TRES request asks for.
local function gpus(tres)
	local n = 0
	for count in gpu_requests(tres) do
		n = n + count
	end
	return n
end

-- A number of the job; 0 if it is not set.
local function set(number, unset)
	return number and number < unset and number or 0
end

-- True if Slurm may give the job more than one node, as far as its options tell; the sidecar (Request.MostNodes) has the same rules.
local function spreads(job)
	local on_job, on_node, on_task = gpus(job.tres_per_job), gpus(job.tres_per_node), gpus(job.tres_per_task)
	local most = set(job.max_nodes, slurm.NO_VAL)
	local tasks = has_flag(job, NTASKS_SET) and set(job.num_tasks, slurm.NO_VAL) or 0
	if set(job.min_nodes, slurm.NO_VAL) > 1 then
		return true
	elseif on_job > 0 and on_node > 0 then
		return on_job > on_node
	end
	if tasks > 0 and (most == 0 or most > tasks) then -- every node needs a task
		most = tasks
	end
	if most > 0 then
		return most > 1
	elseif on_node > 0 or on_task > 0 and set(job.ntasks_per_node, NO_VAL16) > 0 then -- Slurm takes no more nodes than it needs
		return false
	end
	return on_job > 1 or on_task > 1
end

-- The option by which the job keeps its GPUs until it ends, and its way in opt_out; or nil. The sidecar (Rules.wayOut) has the same order.
local function opts_out(job)
	local cron, socket, models = has_flag(job, CRON_JOB), wants_gpu(job.tres_per_socket), several_models(job)
	local shares = job.shared ~= NO_VAL16 and job.shared > SHARED_OK
	if job.het_job_offset ~= nil and job.het_job_offset ~= slurm.NO_VAL then
		return "heterogeneous components (:)", "het"
	elseif job.contiguous == 1 and not (cron or shares or socket or models) and spreads(job) then
		return "--contiguous", "contiguous" -- it can be taken away, the others cannot; one node is contiguous
	elseif job.script == nil then
		return "salloc, or srun outside of a batch job", "session"
	elseif cron then
		return "scrontab", "other"
	elseif shares then
		return "--exclusive=user, =mcs or =topo", "other"
	elseif socket then
		return "--gpus-per-socket", "other"
	elseif models then
		return "several GPU models in one job", "other"
	elseif (job.features or ""):find("[%[%]()*,]") then
		return "brackets, * or a comma in --constraint", "other"
	elseif job.requeue == 0 then
		return "--no-requeue", "no_requeue"
	end
	return nil
end

-- True if one of the script's #SBATCH lines has the option.
local function script_has(job, option)
	return job.script ~= nil and ("\n" .. job.script):match("\n#SBATCH%s[^\n]*%-%-" .. option .. "[=%s]") ~= nil
end

-- True if the job can save its work: it declares that, or requests a signal in its script.
local function can_save(job, hints)
	local mark = settings.checkpoint_mark
	return mark ~= "" and ((job.comment or "") .. "," .. hints):find(mark, 1, true) ~= nil or script_has(job, "signal")
end

-- True if a list of licences has the gate's licence exactly once, with a count of at least 1; else false and the items of the list without it.
local function gated(licenses)
	local found, exact, others = 0, true, {}
	for item in licenses:gmatch("[^,;]+") do
		local name, count = item:match("^([^:=]*)[:=]?(.*)$")
		if name == settings.gate_license then
			local wanted = name == item and 1 or #count <= 10 and count:match("^%d+$") and tonumber(count)
			found = found + 1
			exact = exact and wanted and wanted >= 1 and wanted <= 1073741823
		else
			others[#others + 1] = item
		end
	end
	return found == 1 and exact, found > 0 and table.concat(others, ",") or licenses
end

-- The job's licences with the gate's; nil if they cannot be combined with it. Slurm accepts a count of 0 and several counts of one licence:
-- such entries of the gate's licence become one.
local function license(licenses)
	licenses = licenses or ""
	if settings.gate_license == "" or licenses:find("|", 1, true) or #licenses + #settings.gate_license + 4 > 1024 then
		return nil
	end
	local shut, others = gated(licenses)
	return shut and licenses or others .. (others ~= "" and "," or "") .. settings.gate_license .. ":1"
end

-- The begin time of a job that a licence cannot gate; nil if there may be too little time for it. No job waits longer for a dead daemon than
-- the daemon's own gate.ttl.
local function begin_time(job, ttl, now)
	if script_has(job, "deadline") then
		return nil
	end
	local longest = math.min(settings.gate_seconds, settings.heartbeat_max_age)
	if ttl and ttl > 0 then
		longest = math.min(longest, ttl)
	end
	return math.max(job.begin_time or 0, now + longest)
end

-- The hints of spank/fairlease, else of the batch job's environment; "" if there are none.
local function hints_of(job)
	for i = 0, (job.spank_job_env_size or 0) - 1 do
		local hints = job.spank_job_env[i]:match("^FAIRLEASE_HINTS=(.*)$")
		if hints then
			return hints
		end
	end
	return job.script and job.environment and job.environment["FAIRLEASE_HINTS"] or ""
end

-- Adds a word to the job's admin_comment; other plugins' words stay.
local function note(job, word)
	job.admin_comment = (job.admin_comment and job.admin_comment .. " " or "") .. word
end

-- Copies the hints to admin_comment as one word: slurmctld shows neither them nor a job's environment to others.
local function note_hints(job, hints)
	local list = {}
	for hint in hints:gmatch("[^,;%s]+") do
		list[#list + 1] = hint
	end
	if #list > 0 then
		note(job, "fairlease:" .. table.concat(list, ","):sub(1, 1000):gsub("[^%w%p]", "_"):gsub("|", "_"))
	end
end

-- What jobs may use that were submitted since the daemon made its list of budgets. It counts against their own users only, as in gate_accepted of the C version.
local accepted = {}

-- The budget of an account that refuses jobs, and whether the user may use it; nil: there is none, or the daemon's list is missing or old.
local function budget_of(account, now, user)
	local list = account and io.open(settings.heartbeat_dir .. "/.budgets", "r")
	if not list then
		return nil
	end
	local made, found, may = tonumber(list:read("*l") or ""), nil, false
	if made and math.abs(now - made) <= settings.heartbeat_max_age then
		for line in list:lines() do
			local member, accounts = line:match("^@(%S+) (%S+)$")
			if member and user and member:lower() == user:lower() then
				may = listed(accounts:lower(), account:lower())
			end
			local name, tenant, left, total, per, ends, words, prices = line:match("^(%S+) (%S+) (%S+) (%S+) (%S+) (%d+) (%S+) (%S+)$")
			if name and name:lower() == account:lower() then
				found = {made = made, tenant = tenant, left = tonumber(left), total = tonumber(total), per = per, ends = tonumber(ends), words = words, prices = {}}
				for model, price in prices:gmatch("([^=,]+)=([^,]+)") do
					found.prices[model] = tonumber(price)
				end
			end
		end
	end
	list:close()
	return found, found and may
end

-- The number of tasks of an array, 1 of a job that is none.
local function tasks_of(array)
	local tasks = 0
	for item in (array or ""):gsub("%%.*", ""):gmatch("[^,]+") do
		local first, last, step = item:match("^(%d+)%-?(%d*):?(%d*)$")
		if first then
			first, last, step = tonumber(first), tonumber(last) or tonumber(first), tonumber(step) or 1
			tasks = tasks + (last >= first and step > 0 and math.floor((last - first) / step) + 1 or 0)
		end
	end
	return math.max(tasks, 1)
end

-- The price of a GPU hour of a model: of one that is not listed the cheapest, and of any model with features (--constraint) the dearest.
local function price_of(budget, model, features)
	local dearest = 0
	for _, price in pairs(budget.prices) do
		dearest = math.max(dearest, price)
	end
	return features and model == "" and dearest or budget.prices[model] or budget.prices["*"] or 0
end

-- The GPU hours at prices that the whole run of a job can use within a budget's period, as gate_hours of the C version.
local function hours_of(job, budget, limit, now)
	local features = (job.features or "") ~= ""
	local tasks = has_flag(job, NTASKS_SET) and set(job.num_tasks, slurm.NO_VAL) or 0
	local nodes = set(job.max_nodes, slurm.NO_VAL)
	if tasks > 0 then
		nodes = math.min(nodes, tasks) -- every node needs a task
	end
	nodes = math.max(nodes, set(job.min_nodes, slurm.NO_VAL), 1)
	if tasks == 0 then
		tasks = math.max(set(job.ntasks_per_node, NO_VAL16), 1) * nodes
	end
	local most, seconds = 0, budget.ends - math.max(job.begin_time or 0, now)
	for field, times in pairs({tres_per_job = 1, tres_per_node = nodes, tres_per_socket = nodes, tres_per_task = tasks}) do
		local hour = 0
		for count, model in gpu_requests(job[field]) do
			hour = hour + count * price_of(budget, model, features)
		end
		most = math.max(most, hour * times)
	end
	if limit > 0 then
		seconds = math.min(seconds, limit * 60)
	end
	return math.max(most * tasks_of(job.array_inx) * seconds / 3600, 0)
end

-- The message to the user of a job that can use more than is left of its account's budget, or nil: then it is noted as accepted. Slurm refuses users
-- who do not have the account.
local function budget_refusal(job, now)
	local budget, may = budget_of(job.account or job.default_account, now, job.user_name)
	if not may then
		return nil
	end
	local limit = set(job.time_limit, slurm.NO_VAL)
	local hours, kept = hours_of(job, budget, limit, now), {}
	for _, other in ipairs(accepted) do
		if other.at >= budget.made then
			kept[#kept + 1] = other
			if other.tenant == budget.tenant and other.user == job.user_id then
				budget.left = budget.left - other.hours
			end
		end
	end
	accepted = kept
	if hours <= 0 then
		return nil
	elseif hours <= budget.left + 0.0005 then
		accepted[#accepted + 1] = {at = now, tenant = budget.tenant, user = job.user_id, hours = hours}
		return nil
	end
	return ("fairlease: this job may use %.2f GPU-hours at prices%s, and account %s has %.2f left of its budget of %.2f for this %s, besides what its other jobs may use: " ..
		"ask for a shorter --time or fewer GPUs, or wait for the next period, from %s; see: fairlease budgets"):format(hours,
		(job.time_limit or slurm.NO_VAL) ~= slurm.NO_VAL and "" or " (it states no --time)", budget.tenant, math.max(budget.left, 0), budget.total, budget.per, budget.words)
end

function fairlease_job_submit(job, part_list, submit_uid)
	local now, hints = os.time(), hints_of(job)
	note_hints(job, hints)
	local partition, ttl = governed(job, now)
	if not partition then
		return slurm.SUCCESS
	end
	if not wants_gpus(job) then
		if settings["opt_out.no_gpus"] ~= "refuse" or wants_shards(job) then
			return slurm.SUCCESS
		end
		tell("fairlease: partition " .. partition .. " is for jobs with GPUs: ask for some (--gres=gpu:1), or use another partition")
		return slurm.ESLURM_ACCESS_DENIED
	end
	if job.contiguous == 1 and settings["opt_out.contiguous"] == "override" then
		job.contiguous = 0
		tell("fairlease: --contiguous is dropped here")
	end
	if settings["opt_out.no_requeue"] == "override" and job.script ~= nil then
		job.requeue = 1
	end
	if has_flag(job, EXPEDITED) then
		local word = settings["opt_out.expedite"]
		if word == "refuse" then
			tell("fairlease: GPU jobs of partition " .. partition .. " cannot use --requeue=expedite: write --requeue, or use another partition")
			return slurm.ESLURM_ACCESS_DENIED
		elseif word == "override" then
			job.bitflags = job.bitflags - EXPEDITED
			tell("fairlease: --requeue=expedite is --requeue here")
		end
	end
	local option, way = opts_out(job)
	local word = option and settings["opt_out." .. way]
	if word == "refuse" then
		tell("fairlease: GPU jobs of partition " .. partition .. " cannot wait for a lease with " .. option ..
			": submit with sbatch and without it, or use another partition")
		return slurm.ESLURM_ACCESS_DENIED
	end
	if word == "leave" then -- it has no lease
		return slurm.SUCCESS
	end
	if (not option or way == "no_requeue") and settings.require_checkpoint and not can_save(job, hints) then
		local instead = settings.checkpoint_mark ~= "" and ", or say that yours can with --comment=" .. settings.checkpoint_mark or ""
		tell("fairlease: GPU jobs here must be able to save their work and resume: submit with --signal, for example --signal=USR1@120" .. instead)
		return slurm.ESLURM_ACCESS_DENIED
	end
	local refusal = budget_refusal(job, now)
	if refusal then
		tell(refusal)
		return slurm.ESLURM_ACCESS_DENIED
	end
	if option == "scrontab" then -- it cannot be gated
		return slurm.SUCCESS
	end

	local part = way == "het" and job.het_job_offset > 0 -- Slurm takes licences on the first component only
	local licenses = not part and license(job.licenses)
	local gate = not licenses and begin_time(job, ttl, now)
	if licenses then
		job.licenses = licenses
		if job.site_factor == slurm.NO_VAL then -- else another plugin has set it
			job.site_factor = 2 ^ 32 + settings.gate_site_factor -- slurmctld makes it unsigned, 32 bits
		end
	elseif gate then
		note(job, ("fl:begin=%.0f,gate=%.0f"):format(job.begin_time or 0, gate))
		job.begin_time = gate
	else
		return slurm.SUCCESS
	end
	if settings.mark_requeue and job.requeue ~= 0 then
		job.requeue = 1
	end
	local account = job.account and "account " .. job.account or "your default account"
	local later = option and "it then keeps its GPUs until it ends"
		or "at a lease's end it may be requeued, so save your work when signalled"
	tell("fairlease: this job waits for a GPU lease of " .. account .. "; " .. later .. "; see: fairlease explain JOBID")
	return slurm.SUCCESS
end

-- The message to a user whose change would open the gate of a waiting job, or let a job grow that was accepted; or nil.
local function opens(job, record, now)
	local begin = job.begin_time or 0
	local function shut(licenses)
		return settings.gate_license ~= "" and not licenses:find("|", 1, true) and gated(licenses)
	end
	local longer = (job.time_limit or slurm.NO_VAL) ~= slurm.NO_VAL and job.time_limit > (record.time_limit or 0) -- the highest number is no limit
	local earlier = begin ~= 0 and begin < (record.begin_time or math.huge)
	local larger = job.account or job.partition or job.features or set(job.max_nodes, slurm.NO_VAL) > 0 or set(job.min_nodes, slurm.NO_VAL) > 0 or has_flag(job, NTASKS_SET) or set(job.ntasks_per_node, NO_VAL16) > 0 or
		job.tres_per_job or job.tres_per_node or job.tres_per_socket or job.tres_per_task
	if job.licenses and shut(record.licenses or "") and not shut(job.licenses) then
		return ("fairlease: a waiting GPU job keeps the licence %s:1 until its lease: include %s:1 in the new list; see: fairlease explain JOBID")
			:format(settings.gate_license, settings.gate_license)
	elseif begin ~= 0 and begin <= now + settings.gate_seconds and (record.admin_comment or ""):find("fl:begin=", 1, true) then
		return ("fairlease: a waiting GPU job's start time is set by its lease; a user may only set it to more than %d s from now; see: fairlease explain JOBID")
			:format(settings.gate_seconds)
	end
	if (longer or earlier or larger) and (budget_of(record.account, now) or budget_of(job.account, now)) then
		return "fairlease: an account of yours has a budget that refuses jobs: cancel the job and submit it again to change its time limit, start time, size, constraint, " ..
			"account or partition, or ask an operator; see: fairlease budgets"
	end
	return nil
end

function fairlease_job_modify(job, record, part_list, modify_uid)
	if not settings.protect_gate or modify_uid == 0 or modify_uid == slurm_user or listed(settings.operator_uids, modify_uid) then
		return slurm.SUCCESS
	end
	local now, guarded = os.time(), false
	local refusal = opens(job, record, now)
	for _, partition in ipairs(refusal and items(settings.partitions) or {}) do
		local grants, daemon = granting(partition, now)
		if grants and daemon == modify_uid then
			return slurm.SUCCESS
		end
		guarded = guarded or grants and daemon ~= nil -- a daemon that does not name its user is older, and must open gates, too
	end
	if not guarded then
		return slurm.SUCCESS
	end
	tell(refusal)
	return slurm.ESLURM_ACCESS_DENIED
end

slurm_job_submit = fairlease_job_submit
slurm_job_modify = fairlease_job_modify
return slurm.SUCCESS
